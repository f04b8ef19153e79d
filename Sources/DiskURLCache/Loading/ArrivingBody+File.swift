import Dispatch
import Foundation

// How the bytes of a body leave the memory, in batches and by one thread at a time; and the body when it is whole.

extension ArrivingBody {
    /// Whether there is so much in memory that some of it is written to a file.
    func hasTooMuch(_ state: State) -> Bool {
        guard state.usesFile else { return false }
        let isLarge = state.file != nil || state.isForStore && length > Self.memoryLimit
        return state.bytesInMemory > (isLarge ? Self.batch : Self.memoryLimit)
    }

    /// The queue on which `write` is to be called now; nil if there is nothing to write, or a write is under way.
    func beginWriting(_ state: inout State) -> DispatchQueue? {
        guard !state.isWriting, hasTooMuch(state) else { return nil }
        state.isWriting = true
        let queue = state.queue ?? DispatchQueue(label: "DiskURLCache.body", qos: .userInitiated)
        state.queue = queue
        return queue
    }

    /// Writes what is too much for memory. On `queue`.
    func write() {
        while let batch = nextBatch({ self.hasTooMuch($0) }) { write(batch) }
    }

    /// The file of a body that is whole gets what it does not have yet. On `fileQueue`; nothing is done without a file.
    func writeRest() {
        while let batch = nextBatch({ $0.isForStore && $0.usesFile && $0.file != nil && !$0.pieces.isEmpty }) {
            write(batch)
        }
    }

    /// What is written at once. These are the first of `state.pieces` until `end(_:)` removes them there.
    private struct Batch {
        let pieces: [Data]
        var file: IncomingBody?
        let isForStore: Bool
    }

    private func nextBatch(_ isNeeded: (State) -> Bool) -> Batch? {
        state.withLock { state in
            state.isWriting = false
            if state.isAbandoned { state.release() }
            dropWhatWasTaken(&state)
            resumeIfCaughtUp(&state)
            guard isNeeded(state) else { return nil }
            state.isWriting = true
            return Batch(pieces: state.pieces, file: state.file, isForStore: state.isForStore)
        }
    }

    private func write(_ batch: Batch) {
        var batch = batch
        // A rule decides, so this is not under the lock.
        if batch.isForStore, batch.file == nil, !acceptsFile { return stayInMemory() }
        for piece in batch.pieces {
            if batch.isForStore {
                if let failure = cache.store.append(piece, to: &batch.file) { return failed(failure, batch) }
            } else {
                do throws(Errno) {
                    if batch.file == nil { batch.file = try cache.store.makeUnnamedFile() }
                    try batch.file?.append(piece)
                } catch {
                    return failed(.diskFailed(errno: error.code), batch)
                }
            }
        }
        end(batch)
    }

    /// The pieces of the batch are in its file.
    private func end(_ batch: Batch) {
        let isNamedInVain = state.withLock { state in
            let taken = min(state.takenPieces, batch.pieces.count)
            let bytes = batch.pieces.reduce(0) { $0 + $1.count }
            let unread = batch.pieces[taken...].reduce(0) { $0 + $1.count }
            let end = batch.file?.count ?? 0
            if case .pieces = reader {
                state.unread = (state.unread.isEmpty ? end - unread : state.unread.lowerBound)..<end
            }
            state.pieces.removeFirst(batch.pieces.count)
            state.takenPieces -= taken
            state.bytesInMemory -= bytes
            state.file = batch.file
            return batch.isForStore && !state.isForStore
        }
        // Meanwhile it was decided that the body is not stored.
        if isNamedInVain { batch.file?.discard() }
    }

    /// The response is not for the disk.
    private func stayInMemory() {
        let limit = cache.store.largestMemoryEntry
        let bytes = state.withLock { state in
            if state.isForStore { state.storing = .wantedInMemory(limit: limit) }
            // One piece for a client that takes the body whole: later ones are appended to it.
            if isForWholeReader { state.pieces = [Self.joined(state.pieces)] }
            return max(state.count, length)
        }
        if bytes > limit { giveUp(.tooLarge(bytes: bytes, limit: limit)) }
    }

    /// The disk took less than the batch. The body continues in memory; it is not stored if memory may not keep it.
    private func failed(_ failure: DiskURLCache.Reason, _ batch: Batch) {
        let (before, written, count) = state.withLock { ($0.file, $0.written, $0.count) }
        let isKeptWhole = isForWholeReader || batch.isForStore && count <= cache.store.largestMemoryEntry
        let beginning = isKeptWhole ? before.map { $0.opening.part(0..<written).contents } ?? Data() : nil
        state.withLock { state in
            state.mayUseFile = false
            guard let beginning else { return }
            // A client that takes pieces may have taken a part of the file.
            let taken = state.unread.isEmpty ? beginning.count : state.unread.lowerBound
            let parts = [beginning.prefix(taken), beginning.dropFirst(taken)].filter { !$0.isEmpty }.map { Data($0) }
            state.pieces = parts + state.pieces
            if taken > 0, !parts.isEmpty { state.takenPieces += 1 }
            state.bytesInMemory += beginning.count
            state.file = nil
            state.unread = 0..<0
            if isForWholeReader {
                state.pieces = [Self.joined(state.pieces)]
                state.takenPieces = 0
            }
            if batch.isForStore, state.isForStore {
                state.storing = .wantedInMemory(limit: cache.store.largestMemoryEntry)
            }
        }
        (batch.file ?? before)?.discard()
        if batch.isForStore, beginning == nil || count > cache.store.largestMemoryEntry { giveUp(failure) }
    }

    static func joined(_ pieces: [Data]) -> Data {
        guard pieces.count > 1 else { return pieces.first ?? Data() }
        var data = Data(capacity: pieces.reduce(0) { $0 + $1.count })
        for piece in pieces { data.append(piece) }
        return data
    }

    // MARK: Whole

    /// A body that has arrived whole.
    struct Whole {
        var body: Body
        /// Has the body, too, and can become the record.
        var file: IncomingBody?
    }

    /// All that has arrived, as it is at one moment: the load may be cancelled at the next, and then the body has no
    /// bytes any more.
    private struct Arrived {
        var file: IncomingBody?
        /// How many bytes of the body the file has. The others are in `pieces`.
        var written: Int
        var pieces: [Data]
        /// The whole body, if it was read from the file before.
        var gathered: Data?

        init(_ state: State) {
            file = state.file
            written = state.written
            pieces = state.pieces
            gathered = state.gathered
        }
    }

    /// The body for the store, after its last piece; on `fileQueue` if it has one. Nil if the load has ended: what its
    /// client did not need is gone, so what is left is not the body.
    var content: Result<Whole, DiskURLCache.Reason>? {
        writeRest()
        let (arrived, refusal) = state.withLock { state -> (Arrived?, DiskURLCache.Reason?) in
            switch state.storing {
            case .wanted, .wantedInMemory: (Arrived(state), nil)
            case .refused(let reason): (nil, reason)
            case .over: (nil, nil)
            }
        }
        if let refusal { return .failure(refusal) }
        guard let arrived else { return nil }
        if let file = arrived.file, !isForWholeReader { return .success(Whole(body: .file(file.opening), file: file)) }
        guard let data = gathered(arrived) else { return .failure(.diskFailed(errno: EIO)) }
        return .success(Whole(body: .memory(data), file: arrived.file))
    }

    /// The whole body in memory, for a client that takes it whole; read from its file if it has one, so on `fileQueue`
    /// then. Nil if the file cannot be read, or the load has ended.
    var gathered: Data? {
        state.withLock { $0.isAbandoned ? nil : Arrived($0) }.flatMap { gathered($0) }
    }

    private func gathered(_ arrived: Arrived) -> Data? {
        guard let file = arrived.file else { return keepGathered(Self.joined(arrived.pieces)) }
        if let data = arrived.gathered { return data }
        return file.opening.part(0..<arrived.written).contents(followedBy: arrived.pieces).map { keepGathered($0) }
    }

    private func keepGathered(_ data: Data) -> Data {
        // A client that takes pieces still has its place among them.
        guard isForWholeReader else { return data }
        state.withLock { state in
            guard !state.isAbandoned else { return }
            state.gathered = data
            if state.file == nil, !state.isWriting { state.pieces = [data] }
        }
        return data
    }

    /// Reads the whole body, also once it is stored or discarded: for a delegate, or an app, that looks at a response
    /// before it is stored. If its file cannot be read, the body is given up.
    var reading: @Sendable () -> Data {
        let (file, written, pieces) = state.withLock { ($0.file, $0.written, $0.pieces) }
        guard let opening = file?.opening.part(0..<written) else { return { Self.joined(pieces) } }
        return { [self] in
            // The process would crash on a mapped file that is cut or cannot be read, so the file is read.
            if let data = opening.contents(followedBy: pieces) { return data }
            giveUp(.diskFailed(errno: EIO))
            return Data()
        }
    }
}
