import Foundation

// What the maintenance queue does, and the calls that wait for it.

extension TieredStore {
    /// False in a forked child, which is not to write what its parent stored.
    private var isOwnProcess: Bool { diskStore?.isOwnProcess != false }

    /// One pass: what is buffered goes to the disk in the order of the calls, and the disk is kept within its bounds.
    func pass(isFlush: Bool) {
        guard let disk, isOwnProcess else { return }
        takeRemovalsNow()
        let hasWrites = !buffer.isEmpty
        guard disk.beginPass(isFlush: isFlush, mayMake: hasWrites) else {
            // What was stored since is for the next pass, which may make the directory.
            if hasWrites { dropAll() } else if !buffer.isEmpty { maintenance.schedule(after: 0) }
            return
        }
        noteUses()
        // Who removes from now on finds what was written, also what came after the pass had begun.
        if drain(to: disk) { takeRemovalsNow(isCertain: true) }
        disk.endPass(isFlush: isFlush)
        updateReserved()
    }

    /// True where something was written.
    private func drain(to disk: any StorageLayer) -> Bool {
        var hasWritten = false
        var folder: FileIdentity?
        var lastLook: UInt64 = 0
        while let next = buffer.next() {
            takeRemovals(at: MonotonicTime.nanoseconds)
            writing.withLock { _ in
                // Removed or replaced while it waited.
                guard let write = buffer.current(next) else { return }
                // Another process removed everything since the entry was stored: the folder is another one. Looked at now and then,
                // and before an entry is dropped for it.
                if let stored = write.folder {
                    let now = MonotonicTime.nanoseconds
                    if now &- lastLook > DiskStore.lookInterval || folder != stored {
                        (folder, lastLook) = (diskStore?.folderIdentity(), now)
                    }
                    if let folder, folder != stored, diskStore?.wasReplacedWhenEmpty(stored) == false { return }
                }
                disk.write(write.entry, for: write.key, usedAt: write.usedAt)
                hasWritten = true
                if disk.canBeChangedByOthers { noteUnconfirmed(write.key, write.entry.metadata) }
            }
            // What another process removed while it was written is still in the buffer, and goes with the file.
            takeRemovals(at: MonotonicTime.nanoseconds)
            buffer.finish(next)
            if let diskStore, diskStore.isOverCapacity {
                noteUses()
                diskStore.evictIfNeeded(now: false)
            }
        }
        return hasWritten
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
        diskStore?.balanceByNeighbour { pass(isFlush: true) }
    }

    /// The cache goes: what is buffered lands now, and nothing is held any more.
    func close() {
        // In a forked child the queue may be gone, and what is buffered is its parent's to write.
        guard isOwnProcess else { return }
        maintenance.perform { pass(isFlush: true) }
        disk?.close()
    }
}
