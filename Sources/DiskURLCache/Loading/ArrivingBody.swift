import Dispatch
import Foundation

/// The body of an answer while it arrives: the one owner of its bytes, until the client has taken them and the store
/// has them.
///
/// A body that is to be stored is written to a file while it arrives, in batches, on a queue of its own, so that a slow
/// disk stops neither the network nor another load. The file has all its bytes, and becomes the record. What arrives is
/// gathered in memory, too, up to a megabyte, or all of it for a client that takes the body whole.
///
/// For any other body the file has no name, and is there for what the client has not taken yet, if that is more than a
/// megabyte: a transfer of URLSession cannot be paused on Linux, so a client that is slower than the network would fill
/// the memory. A transport that can be paused is paused instead.
///
/// One thread at a time appends, one reader takes, and one thread at a time writes.
final class ArrivingBody: Sendable {
    enum Reader {
        /// Takes the pieces as they arrive.
        case pieces(any LoadClient)
        /// Takes the whole body at the end: it is gathered in memory, where it has to be then.
        case whole
        /// A refresh in the background: only the store takes the body.
        case none
    }

    /// What a client that takes pieces gets next.
    enum Part {
        case piece(Data)
        /// To be read on a queue that nobody else waits for.
        case file(OpenBody)
        /// Nothing yet: `LoadClient.bodyArrived` is called once there is more.
        case later
        case end
    }

    enum Storing {
        case wanted(limit: Int)
        /// The disk does not take it.
        case wantedInMemory(limit: Int)
        case refused(DiskURLCache.Reason)
        /// It was never wanted, or the store has the body.
        case over
    }

    /// Guarded by the lock around it.
    struct State {
        var storing: Storing
        /// The bytes that have arrived so far.
        var count = 0
        /// All that has arrived, in one piece. Nil before the first piece, and for a body that memory does not keep.
        var gathered: Data?
        /// The latest pieces, which no file has yet. None for a client that takes the body whole: `gathered` has them.
        var pieces: [Data] = []
        /// The bytes of `pieces`, or those of `gathered` that are still to be written.
        var bytesInMemory = 0
        /// How many of `pieces` the client has taken.
        var takenPieces = 0
        /// The file for the bytes that came before those in `pieces`. Of a body for the store it has all of these; of
        /// any other body, those that the client had not taken when they were written.
        var file: IncomingBody?
        /// The bytes of the file that a client that takes pieces has not taken.
        var unread = 0..<0
        /// Made with the first write.
        var queue: DispatchQueue?
        /// Whether a file may have what is too much for memory. Not if the disk has failed.
        var mayUseFile: Bool
        /// A thread writes on `queue`, or is about to. It goes on until nothing is left to write.
        var isWriting = false
        /// Nobody needs the body any more.
        var isAbandoned = false
        /// Bytes that the client has not taken.
        var undelivered = 0
        /// No more pieces come.
        var isComplete = false
        /// The reader found nothing, and waits for `bodyArrived`.
        var isAwaited = false
        /// The request, if its transport can be paused. Released at the end: it holds the load.
        var pausable: FetchToken?
        var isPaused = false
        /// Told once that the body is not stored. Released at the end: it holds the load.
        var refused: (@Sendable (DiskURLCache.Reason) -> Void)?

        var isForStore: Bool { limit != nil }

        /// The bytes that the store takes of the body at most; nil if it is not for the store.
        var limit: Int? {
            switch storing {
            case .wanted(let limit), .wantedInMemory(let limit): limit
            case .refused, .over: nil
            }
        }

        /// Whether what is too much for memory goes to a file now.
        var usesFile: Bool { if case .wantedInMemory = storing { false } else { mayUseFile } }

        /// Whether the file gets all of it.
        var isForFile: Bool { isForStore && usesFile }

        /// The bytes that the file has of the body.
        var written: Int { count - bytesInMemory }

        /// Lets go of all bytes.
        mutating func release() {
            gathered = nil
            pieces = []
            takenPieces = 0
            bytesInMemory = 0
            file = nil
        }
    }

    /// Bytes of a body that are kept in memory, and that may wait for a client before its transfer is paused.
    static let memoryLimit = TieredStore.gatheringLimit
    /// Memory that is taken at once for a body, in bytes: what a head says of its length may be wrong.
    static let largestReservation = 4 << 20
    /// Bytes that are written at once to a file that is for the store, or in use already.
    static let batch = 256 << 10
    /// A transport is also paused if so much waits for the disk.
    static let writingLimit = 4 << 20

    let cache: CacheCore
    private let hop: ResolvedRequest
    /// The response that is to be stored with the body; nil if there is none.
    private let response: StoredResponse?
    /// Whether the response is only held for a while, which memory does.
    private let isHeld: Bool
    let reader: Reader
    /// As the head gives it; 0 if it does not.
    let length: Int
    let state: Mutex<State>
    /// Those that the body is compared with; nil if there are none.
    private let digests: Mutex<BodyDigests>?

    /// - Parameters:
    ///   - response: the response to store with the body; nil to store none.
    ///   - pausable: the request, if its transport can be paused.
    ///   - refused: called once, from any thread, when it is decided that the body is not stored after all.
    init(
        for response: StoredResponse?, reader: Reader, length: Int? = nil, isHeld: Bool = false,
        digests: BodyDigests? = nil, pausable: FetchToken? = nil, of hop: ResolvedRequest, in cache: CacheCore,
        refused: (@Sendable (DiskURLCache.Reason) -> Void)? = nil
    ) {
        self.cache = cache
        self.hop = hop
        self.response = response
        self.isHeld = isHeld
        self.reader = reader
        self.length = length ?? 0
        self.digests = digests.map { Mutex($0) }
        let limit = cache.store.largestStorableBody
        var state = State(
            storing: response == nil ? .over : .wanted(limit: limit), mayUseFile: true, pausable: pausable,
            refused: refused)
        state.mayUseFile = state.isForStore || Self.usesFile(reader, pausable)
        self.state = Mutex(consume state)
        if response != nil, self.length > limit { giveUp(.tooLarge(bytes: self.length, limit: limit)) }
    }

    /// Whether a body that is not stored may wait in a file.
    static func usesFile(_ reader: Reader, _ pausable: FetchToken?) -> Bool {
        if case .pieces = reader { pausable == nil } else { false }
    }

    var isForWholeReader: Bool { if case .whole = reader { true } else { false } }

    /// Whether the rules put the response on disk. Calls the app.
    var acceptsFile: Bool { response.map { !isHeld && cache.acceptsFile($0, for: hop) } ?? false }

    // MARK: From the network

    /// Takes the next piece.
    /// - Returns: whether the transfer was paused now, since the client or the disk is slower.
    func append(_ piece: Data) -> Bool {
        guard !piece.isEmpty else { return false }
        digests?.withLock { $0.update(piece) }
        let todo = state.withLock { state -> AfterPiece in
            state.count += piece.count
            keep(piece, &state)
            defer { state.isAwaited = false }
            return AfterPiece(
                refusal: excess(state), isAwaited: state.isAwaited, isPausedNow: pauseIfBehind(&state),
                writingQueue: beginWriting(&state))
        }
        if let refusal = todo.refusal { giveUp(refusal) }
        todo.writingQueue?.async { self.write() }
        if todo.isAwaited, case .pieces(let client) = reader { client.bodyArrived() }
        return todo.isPausedNow
    }

    /// What is done after a piece, outside the lock.
    private struct AfterPiece {
        var refusal: DiskURLCache.Reason?
        var isAwaited: Bool
        var isPausedNow: Bool
        var writingQueue: DispatchQueue?
    }

    /// Why the store does not take a body of this length; nil if it does.
    private func excess(_ state: State) -> DiskURLCache.Reason? {
        guard let limit = state.limit, state.count > limit else { return nil }
        return .tooLarge(bytes: state.count, limit: limit)
    }

    private func keep(_ piece: Data, _ state: inout State) {
        gather(piece, &state)
        if case .pieces = reader { state.undelivered += piece.count } else if !state.isForFile { return }
        state.bytesInMemory += piece.count
        if !isForWholeReader { state.pieces.append(piece) }
    }

    /// Whether the client or the disk is so far behind that the transfer waits.
    private func isBehind(_ state: State) -> Bool {
        // A body that goes to no file waits for no disk.
        state.undelivered > Self.memoryLimit || state.usesFile && state.bytesInMemory > Self.writingLimit
    }

    private func pauseIfBehind(_ state: inout State) -> Bool {
        guard let pausable = state.pausable, !state.isPaused, isBehind(state) else { return false }
        state.isPaused = true
        // Under the lock, so that it cannot come after the resumption that follows it.
        pausable.setPaused(true)
        return true
    }

    func resumeIfCaughtUp(_ state: inout State) {
        guard state.isPaused, !isBehind(state) else { return }
        state.isPaused = false
        state.pausable?.setPaused(false)
    }

    /// The last piece has arrived, or no more will. A call that follows tells the client.
    func complete() {
        state.withLock { state in
            state.isComplete = true
            state.pausable = nil
        }
    }

    /// For tests: what no file has, of all that has arrived.
    var bytesInMemory: Int { state.withLock { $0.bytesInMemory } }

    // MARK: To the client

    /// Takes the next part. For one reader at a time that takes pieces.
    func next() -> Part {
        state.withLock { state in
            if !state.unread.isEmpty, let file = state.file {
                let end = min(state.unread.lowerBound + OpenBody.pieceLength, state.unread.upperBound)
                let range = state.unread.lowerBound..<end
                let part = state.gathered.map { Part.piece(Data($0[range])) } ?? .file(file.opening.part(range))
                state.unread = end..<state.unread.upperBound
                dropWhatWasTaken(&state)
                noteTaken(range.count, &state)
                return part
            }
            if state.takenPieces < state.pieces.count {
                let piece = state.pieces[state.takenPieces]
                state.takenPieces += 1
                // Many at once, since each time the others move: a server may send single bytes.
                if state.takenPieces > state.pieces.count / 2 { dropWhatWasTaken(&state) }
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
        resumeIfCaughtUp(&state)
    }

    /// Frees what the client has taken, unless the file is to have it, or a thread is writing it.
    func dropWhatWasTaken(_ state: inout State) {
        guard !state.isForFile, !state.isWriting else { return }
        guard case .pieces = reader else {
            state.pieces = []
            state.bytesInMemory = 0
            return
        }
        // The next time that there is too much, a new file is made: this one has nothing more to give.
        if state.unread.isEmpty { state.file = nil }
        guard state.takenPieces > 0 else { return }
        for piece in state.pieces.prefix(state.takenPieces) { state.bytesInMemory -= piece.count }
        state.pieces.removeFirst(state.takenPieces)
        state.takenPieces = 0
    }

    // MARK: To the store

    /// Why the body is no longer to be stored.
    var refusal: DiskURLCache.Reason? {
        state.withLock { if case .refused(let reason) = $0.storing { reason } else { nil } }
    }

    /// Which digest the body contradicts; nil if none. After the end.
    var wrongDigest: String? { digests?.withLock { $0.contradiction } }

    /// The queue on which a body with a file is finished and stored; nil for a body in memory.
    var fileQueue: DispatchQueue? { state.withLock { $0.file != nil || $0.isWriting ? $0.queue : nil } }

    func giveUp(_ reason: DiskURLCache.Reason) {
        let refused = state.withLock { state -> (@Sendable (DiskURLCache.Reason) -> Void)? in
            guard state.isForStore else { return nil }
            endStoring(&state, .refused(reason))
            defer { state.refused = nil }
            return state.refused
        }
        refused?(reason)
    }

    /// The store has the body, or will not get it. What the client has not taken yet remains for it.
    func endStoring() {
        state.withLock { endStoring(&$0, .over) }
    }

    private func endStoring(_ state: inout State, _ storing: Storing) {
        if state.isForStore { state.storing = storing }
        // A client that takes pieces has them in `pieces` and in the file, which may begin later in the body from now
        // on.
        if !isForWholeReader { state.gathered = nil }
        let file = state.file
        // A body that has a file goes on in it, without a name, unless memory has it anyway.
        state.mayUseFile =
            state.mayUseFile && !isForWholeReader && (file != nil || Self.usesFile(reader, state.pausable))
        if case .none = reader { abandon(&state) }
        dropWhatWasTaken(&state)
        if let file { state.queue?.async { file.discard() } }
    }

    /// The load has ended: only a client that takes pieces may need what it has not taken yet.
    func discard() {
        state.withLock { state in
            state.refused = nil
            endStoring(&state, .over)
            if case .pieces = reader, !state.isAbandoned { return }
            abandon(&state)
        }
    }

    /// The client was closed, or there is none.
    private func abandon(_ state: inout State) {
        state.isAbandoned = true
        state.mayUseFile = false
        if !state.isWriting { state.release() }
    }
}
