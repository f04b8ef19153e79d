import Dispatch
import Foundation

// How a body is gathered in memory; how its bytes get to the file, in batches and by one thread at a time; and the body
// when it is whole.

extension ArrivingBody {
    // MARK: In memory

    /// Copies the piece behind those before it, so that the body is in one place as soon as it is whole. A body of one
    /// piece is not copied.
    func gather(_ piece: Data, _ state: inout State) {
        guard gathers(state) else {
            state.gathered = nil
            return
        }
        if state.count > piece.count {
            state.gathered?.append(piece)
        } else {
            state.gathered = piece.count < length ? joined([piece]) : piece
        }
    }

    /// Whether memory keeps the whole body: for a client that takes it whole, or for the store.
    private func gathers(_ state: State) -> Bool {
        if isForWholeReader { return true }
        return state.isForStore && (!state.usesFile || max(state.count, length) <= Self.memoryLimit)
    }

    /// The pieces in one, with space for those that follow.
    private func joined(_ pieces: [Data]) -> Data {
        let count = pieces.reduce(0) { $0 + $1.count }
        var data = Data(capacity: max(count, min(length, Self.largestReservation)))
        for piece in pieces { data.append(piece) }
        return data
    }

    // MARK: To the file

    /// Whether there is so much in memory that some of it is written to a file.
    func hasTooMuch(_ state: State) -> Bool {
        guard state.usesFile else { return false }
        let isLarge = state.file != nil || state.isForStore && length > Self.batch
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
        while let batch = nextBatch({ $0.isForFile && $0.file != nil && $0.bytesInMemory > 0 }) {
            write(batch)
        }
    }

    /// What is written at once. These are the first of `state.pieces` until `end(_:)` removes them there, or a copy of
    /// the next bytes in `state.gathered`.
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
            return Batch(pieces: nextPieces(state), file: state.file, isForStore: state.isForStore)
        }
    }

    private func nextPieces(_ state: State) -> [Data] {
        guard isForWholeReader, let gathered = state.gathered else { return state.pieces }
        // A copy, since the next piece is appended meanwhile.
        let (start, end) = (state.written, min(state.written + Self.batch, state.count))
        return [Data(gathered[start..<end])]
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
            if !isForWholeReader { state.pieces.removeFirst(batch.pieces.count) }
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
            gatherAll(&state, behind: Data(), limit: limit)
            return max(state.count, length)
        }
        if bytes > limit { giveUp(.tooLarge(bytes: bytes, limit: limit)) }
    }

    /// The body goes on in memory.
    /// - Parameter beginning: what came before `pieces`.
    private func gatherAll(_ state: inout State, behind beginning: Data, limit: Int) {
        guard state.isForStore else { return }
        state.storing = .wantedInMemory(limit: limit)
        state.gathered = state.gathered ?? joined([beginning] + state.pieces)
    }

    /// The disk took less than the batch. The body continues in memory; it is not stored if memory may not keep it. A
    /// client that takes pieces still gets those that the file has from there.
    private func failed(_ failure: DiskURLCache.Reason, _ batch: Batch) {
        let limit = cache.store.largestMemoryEntry
        let (before, written, count, isGathered) = state.withLock {
            ($0.file, $0.written, max($0.count, length), $0.gathered != nil)
        }
        // What the file has, if memory may keep the body and does not have it.
        var beginning: Data?
        if let before, !isGathered, count <= limit { beginning = before.opening.part(0..<written).contents }
        let isKept = state.withLock { state in
            state.mayUseFile = false
            // More may have arrived meanwhile, and memory may have let go of the body.
            let hasAll = state.gathered != nil || before == nil || beginning != nil
            guard batch.isForStore, count <= limit, hasAll else { return false }
            gatherAll(&state, behind: beginning ?? Data(), limit: limit)
            return true
        }
        (batch.file ?? before)?.discard()
        if batch.isForStore, !isKept { giveUp(failure) }
    }

    // MARK: Whole

    /// A body that has arrived whole.
    struct Whole {
        var body: Body
        /// Has the body, too, and can become the record.
        var file: IncomingBody?
    }

    /// The body for the store, after its last piece; on `fileQueue` if it has one. Nil if the load has ended: what its
    /// client did not need is gone, so what is left is not the body.
    var content: Result<Whole, DiskURLCache.Reason>? {
        writeRest()
        return state.withLock { state in
            switch state.storing {
            case .refused(let reason): return .failure(reason)
            case .over: return nil
            case .wanted, .wantedInMemory:
                let file = state.isForFile ? state.file : nil
                if let file, state.gathered == nil { return .success(Whole(body: .file(file.opening), file: file)) }
                return .success(Whole(body: .memory(state.gathered ?? joined(state.pieces)), file: file))
            }
        }
    }

    /// The whole body, for a client that takes it whole. Nil if the load has ended.
    var gathered: Data? { state.withLock { $0.isAbandoned ? nil : $0.gathered ?? Data() } }

    /// Reads the whole body, also once it is stored or discarded: for a delegate, or an app, that looks at a response
    /// before it is stored. If its file cannot be read, the body is given up.
    var reading: @Sendable () -> Data {
        let (gathered, file, written, pieces) = state.withLock { ($0.gathered, $0.file, $0.written, $0.pieces) }
        if let gathered { return { gathered } }
        guard let opening = file?.opening.part(0..<written) else { return { [self] in joined(pieces) } }
        return { [self] in
            // The process would crash on a mapped file that is cut or cannot be read, so the file is read.
            if let data = opening.contents(followedBy: pieces) { return data }
            giveUp(.diskFailed(errno: EIO))
            return Data()
        }
    }
}
