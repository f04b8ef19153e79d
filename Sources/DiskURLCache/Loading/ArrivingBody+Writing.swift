import Foundation

// How the bytes of a body leave the memory: in batches, by one thread at a time.

extension ArrivingBody {
    func hasTooMuch(_ state: State) -> Bool {
        guard state.mayUseFile, state.isForStore || pausable == nil else { return false }
        let isLarge = state.file != nil || state.isForStore && length > Self.memoryLimit
        return state.bytesInMemory > (isLarge ? Self.batch : Self.memoryLimit)
    }

    /// Writes what is too much for the memory.
    /// - Parameter isLast: the whole body has arrived: if it has a file, the file gets all of it.
    func write(isLast: Bool = false) {
        writing.withLock { _ in
            while let batch = nextBatch(isLast: isLast), write(batch) {}
        }
    }

    private struct Batch {
        let pieces: [Data]
        let file: IncomingBody?
        let isForStore: Bool
        var bytes: Int { pieces.reduce(0) { $0 + $1.count } }
    }

    private func nextBatch(isLast: Bool) -> Batch? {
        state.withLock { state in
            state.dropTakenPieces()
            let isRest = isLast && state.isForStore && state.file != nil && state.bytesInMemory > 0
            state.isWriting = hasTooMuch(state) || isRest && state.mayUseFile
            guard state.isWriting else {
                if !state.isForStore, state.unread.isEmpty { state.file = nil }
                return nil
            }
            return Batch(pieces: state.pieces, file: state.file, isForStore: state.isForStore)
        }
    }

    /// False if the rest of the body stays in memory.
    private func write(_ batch: Batch) -> Bool {
        var file = batch.file
        // A rule decides, so this is not under the lock.
        if batch.isForStore, file == nil, !acceptsFile() { return stayInMemory() }
        let data = Self.joined(batch.pieces)
        if batch.isForStore {
            if let failure = store.append(data, to: &file) {
                // A file that was made, but could not be written.
                if batch.file == nil { file?.discard() }
                diskFailed(failure)
                return false
            }
        } else {
            do throws(Errno) {
                if file == nil { file = try store.makeUnlinkedFile() }
                try file?.append(data)
            } catch {
                return stayInMemory()
            }
        }
        guard let file else { return stayInMemory() }
        let isWanted = state.withLock { state in
            let isDropped = state.pieces.count < batch.pieces.count
            if isDropped { return false }
            let taken = min(state.takenPieces, batch.pieces.count)
            let unread = batch.pieces[taken...].reduce(0) { $0 + $1.count }
            let end = file.count
            state.unread = (state.unread.isEmpty ? end - unread : state.unread.lowerBound)..<end
            state.pieces.removeFirst(batch.pieces.count)
            state.takenPieces -= taken
            state.bytesInMemory = state.pieces.reduce(0) { $0 + $1.count }
            state.file = file
            return state.isForStore
        }
        // Meanwhile it was decided that the body is not stored.
        if batch.isForStore, !isWanted { file.discard() }
        return true
    }

    private func stayInMemory() -> Bool {
        state.withLock { state in
            (state.mayUseFile, state.isWriting) = (false, false)
            state.dropTakenPieces()
        }
        return false
    }

    /// A body that memory may keep continues in memory, with what its file has. Any other body is not stored.
    private func diskFailed(_ reason: DiskURLCache.Reason) {
        let limit = store.largestMemoryEntry
        let (file, count) = state.withLock { ($0.file, $0.count) }
        let written = count <= limit ? file?.opening.contents : nil
        let isKept = state.withLock { state in
            (state.mayUseFile, state.isWriting) = (false, false)
            guard state.isForStore, state.count <= limit, file == nil || written != nil else { return false }
            state.use = .store(limit: limit)
            guard let written else { return true }
            // The client may have taken a part of the file.
            let taken = state.unread.isEmpty ? written.count : state.unread.lowerBound
            let parts = [written.prefix(taken), written.dropFirst(taken)].filter { !$0.isEmpty }.map { Data($0) }
            state.pieces = parts + state.pieces
            if taken > 0 { state.takenPieces += 1 }
            state.bytesInMemory += written.count
            (state.file, state.unread) = (nil, 0..<0)
            return true
        }
        if isKept { file?.discard() } else { giveUp(reason) }
    }
}
