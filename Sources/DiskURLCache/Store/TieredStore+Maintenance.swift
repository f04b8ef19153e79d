import Foundation

// What the maintenance queue does, and the calls that wait for it.

extension TieredStore {
    /// False in a forked child, which is not to write what its parent stored.
    private var isOwnProcess: Bool { diskStore?.isOwnProcess != false }

    /// One pass: what is buffered goes to the disk in the order of the calls, and the disk is kept within its bounds.
    func pass(isFlush: Bool) {
        guard let disk, isOwnProcess else { return }
        let hasWrites = !buffer.isEmpty
        guard disk.beginPass(isFlush: isFlush, mayMake: hasWrites) else {
            // What was stored since is for the next pass, which may make the directory.
            if hasWrites { dropAll() } else if !buffer.isEmpty { maintenance.schedule(after: 0) }
            return
        }
        noteUses()
        drain(to: disk)
        disk.endPass(isFlush: isFlush)
        updateReserved()
    }

    private func drain(to disk: any StorageLayer) {
        while let next = buffer.next() {
            let result = writing.withLock { _ -> DiskWriteResult? in
                // Removed or replaced while it waited.
                guard let write = buffer.current(next) else { return nil }
                return disk.write(write.entry, for: write.key, usedAt: write.usedAt)
            }
            // A removal by another process that began meanwhile may not have found the file. The entry is still in the buffer, and goes.
            disk.lookNow()
            buffer.finish(next)
            // Another cache stored a later response of the variant.
            if result == .superseded {
                let sequence = next.entry.metadata.sequence
                removeFromMemory(next.key) { $0.sequence == sequence }
            }
            if let diskStore, diskStore.isOverCapacity {
                noteUses()
                diskStore.evictIfNeeded()
            }
        }
    }

    /// The directory cannot be used: what is buffered lives in memory only.
    private func dropAll() {
        while let write = buffer.next() {
            buffer.finish(write)
            hub.emit(.notStored(url: write.entry.metadata.foundationURL, reason: .diskFailed(errno: 0)))
        }
        updateReserved()
    }

    /// Tells the disk what memory answered since the last time, so that its order of use is exact.
    func noteUses() {
        let uses = notedUses.withLock { last in
            let uses = memory.uses(since: last)
            last = uses.reduce(last) { max($0, $1.time) }
            return uses
        }
        if !uses.isEmpty { diskStore?.noteUses(uses.map { ($0.key.name, $0.time) }) }
    }

    /// Returns when all that was stored or removed before is in the files, within the capacity, and the index is saved.
    func flush() {
        guard isOwnProcess else { return }
        maintenance.perform { pass(isFlush: true) }
    }

    /// The cache goes: what is buffered lands now, and nothing is held any more.
    func close() {
        // In a forked child the queue may be gone, and what is buffered is its parent's to write.
        guard isOwnProcess else { return }
        maintenance.perform { pass(isFlush: true) }
        disk?.close()
    }
}
