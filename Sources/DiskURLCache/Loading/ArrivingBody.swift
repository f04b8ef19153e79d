import Dispatch
import Foundation

/// The body of an answer from the network, from its first piece until the client has taken it and the store has it: the
/// one owner of those bytes.
///
/// Up to a megabyte is in memory. What exceeds that is written to a file. For a body that is to be stored the file gets
/// all of it, and becomes the record. For any other body the file has no name, and gets what the client has not taken
/// yet: URLSession on Linux cannot pause a transfer, so a client that is slower than the network would fill the memory
/// otherwise. A transport that can pause is paused instead.
///
/// One thread at a time appends, one reader takes, and one thread at a time writes: on `queue`, so that a slow disk
/// stops neither the network nor another load.
final class ArrivingBody: Sendable {
    /// What the bytes are kept for.
    enum Use {
        /// All of them, until the store has them; also for a client that takes pieces.
        case store(limit: Int)
        /// All of them, in memory: the client gets them in one call.
        case wholeDelivery
        /// Each piece until the client has taken it. Without a client that takes pieces none is kept.
        case delivery
    }

    /// The next part for the client.
    enum Part {
        case piece(Data)
        /// To be read on a queue that nobody else waits for.
        case file(OpenBody)
        /// `LoadClient.bodyArrived` is called once there is more.
        case later
        case end
    }

    /// Guarded by the lock around it.
    struct State {
        var use: Use
        /// Why the body is not stored: it is too large, or the disk failed.
        var refusal: DiskURLCache.Reason?
        /// The length of all pieces so far.
        var count = 0
        /// The bytes that are in no file, in order.
        var pieces: [Data] = []
        /// The client has taken so many of the pieces.
        var takenPieces = 0
        var bytesInMemory = 0
        /// Has the bytes before those in memory: all of them for the store, else those that were not taken.
        var file: IncomingBody?
        /// The bytes of the file that the client has not taken.
        var unread = 0..<0
        var mayUseFile: Bool
        /// Writing was begun, and has not found yet that nothing is left to write.
        var isWriting = false
        /// Bytes that the client has not taken.
        var undelivered = 0
        var isPaused = false
        /// No more pieces come.
        var isComplete = false
        /// The reader found nothing, and waits for `bodyArrived`.
        var isAwaited = false

        var isForStore: Bool { if case .store = use { true } else { false } }

        /// Why the store does not take the body with this piece.
        func refusal(of piece: Data) -> DiskURLCache.Reason? {
            guard case .store(let limit) = use, count + piece.count > limit else { return nil }
            return .tooLarge(bytes: count + piece.count, limit: limit)
        }

        mutating func keep(_ piece: Data) {
            bytesInMemory += piece.count
            if case .wholeDelivery = use, !pieces.isEmpty {
                // Copied into one place; a body of one piece is not copied.
                pieces[0].append(piece)
            } else {
                pieces.append(piece)
            }
        }

        /// Nobody needs the pieces that the client took, except the store and the thread that writes them.
        mutating func dropTakenPieces() {
            guard case .delivery = use else { return }
            var index = takenPieces
            while index > 0, !pieces[index - 1].isEmpty {
                index -= 1
                bytesInMemory -= pieces[index].count
                pieces[index] = Data()
            }
            // Now and then only: the others move up.
            guard takenPieces > 32, takenPieces * 2 > pieces.count else { return }
            pieces.removeFirst(takenPieces)
            takenPieces = 0
        }
    }

    /// Bytes in memory above which the rest of a body goes to its file, and above which a transport is paused.
    static let memoryLimit = TieredStore.gatheringLimit
    /// Bytes that are written at once to a file that is in use already.
    static let batch = 256 << 10

    /// For the files of this load: serial, and no other load waits for it.
    let queue = DispatchQueue(label: "DiskURLCache.body", qos: .userInitiated)
    let store: TieredStore
    /// As the head gives it; 0 if it does not.
    let length: Int
    /// Those that the body is compared with; nil if there are none.
    private let digests: Mutex<BodyDigests>?
    /// The client that takes the pieces as they arrive; nil if it does not, or there is none.
    let reader: (any LoadClient)?
    /// The request, if its transport can be paused.
    let pausable: FetchToken?
    /// Whether the rules put the response on disk. Calls the app.
    let acceptsFile: @Sendable () -> Bool
    /// Called when it is decided that the body is not stored.
    private let refused: @Sendable (DiskURLCache.Reason) -> Void
    let state: Mutex<State>
    /// Held while the file is written.
    let writing = Mutex(())

    init(
        for use: Use, length: Int?, digests: BodyDigests? = nil, reader: (any LoadClient)?, pausable: FetchToken?,
        in store: TieredStore,
        acceptsFile: @escaping @Sendable () -> Bool, refused: @escaping @Sendable (DiskURLCache.Reason) -> Void
    ) {
        self.store = store
        self.length = length ?? 0
        self.digests = digests.map { Mutex($0) }
        self.reader = reader
        self.pausable = pausable
        self.acceptsFile = acceptsFile
        self.refused = refused
        let isWhole = if case .wholeDelivery = use { true } else { false }
        state = Mutex(State(use: use, mayUseFile: !isWhole))
        if case .store(let limit) = use, self.length > limit { giveUp(.tooLarge(bytes: self.length, limit: limit)) }
    }

    // MARK: From the network

    /// Takes the next piece.
    func append(_ piece: Data) {
        guard !piece.isEmpty else { return }
        digests?.withLock { $0.update(piece) }
        if let reason = state.withLock({ $0.refusal(of: piece) }) { giveUp(reason) }
        let (isAwaited, startsWriting) = state.withLock { state in
            state.count += piece.count
            if case .delivery = state.use, reader == nil { return (false, false) }
            state.keep(piece)
            state.undelivered += piece.count
            if let pausable, reader != nil, state.undelivered > Self.memoryLimit, !state.isPaused {
                state.isPaused = true
                // Under the lock, so that the pause cannot come after the resumption that follows it.
                pausable.setPaused(true)
            }
            let startsWriting = !state.isWriting && hasTooMuch(state)
            if startsWriting { state.isWriting = true }
            defer { state.isAwaited = false }
            return (state.isAwaited, startsWriting)
        }
        if startsWriting { queue.async { self.write() } }
        if isAwaited { reader?.bodyArrived() }
    }

    /// The last piece has arrived, or no more will. A call that follows tells the client.
    func complete() {
        state.withLock { $0.isComplete = true }
    }

    /// The client is slower than the network.
    var isPaused: Bool { state.withLock { $0.isPaused } }

    /// For tests.
    var bytesInMemory: Int { state.withLock { $0.bytesInMemory } }

    // MARK: To the client

    /// Takes the next part. For one reader at a time.
    func next() -> Part {
        state.withLock { state in
            if !state.unread.isEmpty, let file = state.file {
                let end = min(state.unread.lowerBound + OpenBody.pieceLength, state.unread.upperBound)
                let part = file.opening.part(state.unread.lowerBound..<end)
                state.unread = end..<state.unread.upperBound
                // The next time that there is too much, a new file is made: this one has nothing more to give.
                if end == state.unread.upperBound, !state.isForStore, !state.isWriting { state.file = nil }
                noteTaken(part.count, &state)
                return .file(part)
            }
            if state.takenPieces < state.pieces.count {
                let piece = state.pieces[state.takenPieces]
                state.takenPieces += 1
                if !state.isWriting { state.dropTakenPieces() }
                noteTaken(piece.count, &state)
                return .piece(piece)
            }
            if state.isComplete { return .end }
            state.isAwaited = true
            return .later
        }
    }

    private func noteTaken(_ bytes: Int, _ state: inout State) {
        state.undelivered -= bytes
        guard state.isPaused, state.undelivered <= Self.memoryLimit else { return }
        state.isPaused = false
        pausable?.setPaused(false)
    }

    /// The whole body, which is in memory.
    var whole: Data { state.withLock { Self.joined($0.pieces) } }

    static func joined(_ pieces: [Data]) -> Data {
        guard pieces.count > 1 else { return pieces.first ?? Data() }
        var data = Data(capacity: pieces.reduce(0) { $0 + $1.count })
        for piece in pieces { data.append(piece) }
        return data
    }

    // MARK: To the store

    /// Why the body is no longer to be stored.
    var refusal: DiskURLCache.Reason? { state.withLock { $0.refusal } }

    /// Which digest the body contradicts; nil if none. After the end.
    var wrongDigest: String? { digests?.withLock { $0.contradiction } }

    /// A body in a file is finished on `queue`, and so stored there.
    var usesFile: Bool { state.withLock { $0.isForStore && ($0.file != nil || $0.isWriting) } }

    /// The body for the store, after the last piece. Writes what is not in the file yet, so it is not to be called on a
    /// queue that others wait for.
    var content: Result<ArrivedBody, DiskURLCache.Reason> {
        write(isLast: true)
        return state.withLock { state in
            if let refusal = state.refusal { return .failure(refusal) }
            return .success(state.file.map { .file($0) } ?? .memory(Self.joined(state.pieces)))
        }
    }

    /// Reads the whole body so far, also once it is stored or discarded. If its file cannot be read, the body is given
    /// up.
    var contents: @Sendable () -> Data {
        let (beginning, pieces) = state.withLock { state in
            (state.file?.opening.part(0..<state.count - state.bytesInMemory), state.pieces)
        }
        return { [self] in
            guard let beginning else { return Self.joined(pieces) }
            // The process would crash on a mapped file that is cut or cannot be read, so the file is read.
            if let read = beginning.contents { return Self.joined([read] + pieces) }
            giveUp(.diskFailed(errno: EIO))
            return Data()
        }
    }

    func giveUp(_ reason: DiskURLCache.Reason) {
        let isFirst = state.withLock { state in
            defer { state.refusal = state.refusal ?? reason }
            return state.refusal == nil
        }
        discard()
        if isFirst { refused(reason) }
    }

    /// The store has the body, or will not get it. What the client has not taken yet remains for it.
    func discard() {
        let file = state.withLock { state in
            state.use = .delivery
            if reader == nil {
                state.bytesInMemory = 0
                (state.pieces, state.takenPieces) = ([], 0)
            } else if !state.isWriting {
                state.dropTakenPieces()
            }
            defer { if reader == nil || state.unread.isEmpty && !state.isWriting { state.file = nil } }
            return state.file
        }
        file?.discard()
    }
}
