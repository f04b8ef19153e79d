#if canImport(Glibc)
    import Glibc
    import Synchronization
#elseif canImport(Musl)
    import Musl
    import Synchronization
#endif

/// A number in memory that all processes on a directory share: whoever removes raises it, so that a memory hit sees by one
/// load whether something was removed.
///
/// System V shared memory, where the system has it: never a mapped file, which kills who reads it when somebody else cuts it.
/// The segment has no key. Its number is in the file `removals`, and it is marked for deletion as soon as it is made: Linux
/// lets others attach it all the same (shmat(2)), and frees it with the last process, however that ends. So nothing is left over.
final class SharedGeneration: Sendable {
    #if canImport(Glibc) || canImport(Musl)
        // `nonisolated(unsafe)`: constant, attached until `deinit`, and only atomic numbers lie there.
        private nonisolated(unsafe) let words: UnsafeMutablePointer<Atomic<UInt64>>
        let identifier: Int32
        let token: UInt64

        private enum Word: Int {
            case generation
            /// Counts removals that could not be told by the file.
            case untold
            case magic
            /// The file `removals` to which the segment belongs.
            case token
        }

        /// A page: the system gives no less.
        private static let size = 4_096
        private static let magic: UInt64 = 0x4455_5243_4745_4E31

        /// Makes one of the file with that token.
        init?(token: UInt64) {
            let identifier = shmget(key_t(0), Self.size, IPC_CREAT | IPC_EXCL | 0o600)
            guard identifier >= 0 else { return nil }
            let words = Self.attach(identifier)
            shmctl(identifier, IPC_RMID, nil)
            guard let words else { return nil }
            words[Word.token.rawValue].store(token, ordering: .relaxed)
            words[Word.magic.rawValue].store(Self.magic, ordering: .releasing)
            self.words = words
            self.identifier = identifier
            self.token = token
        }

        /// Attaches one that another process made; nil when it is gone, or is not what the file says.
        init?(identifier: Int32, token: UInt64) {
            var status = shmid_ds()
            guard identifier >= 0, shmctl(identifier, IPC_STAT, &status) == 0, Self.isOurs(status),
                let words = Self.attach(identifier)
            else { return nil }
            guard words[Word.magic.rawValue].load(ordering: .acquiring) == Self.magic,
                words[Word.token.rawValue].load(ordering: .relaxed) == token
            else {
                shmdt(words)
                return nil
            }
            self.words = words
            self.identifier = identifier
            self.token = token
        }

        deinit {
            shmdt(words)
        }

        private static func isOurs(_ status: shmid_ds) -> Bool {
            let user = geteuid()
            return status.shm_perm.uid == user && status.shm_perm.cuid == user
                && status.shm_perm.mode & 0o777 == 0o600 && status.shm_segsz == size
        }

        private static func attach(_ identifier: Int32) -> UnsafeMutablePointer<Atomic<UInt64>>? {
            // The system's sign of failure is an address of -1.
            guard let memory = shmat(identifier, nil, 0), memory != UnsafeMutableRawPointer(bitPattern: -1) else {
                return nil
            }
            return memory.bindMemory(to: Atomic<UInt64>.self, capacity: size / 8)
        }

        /// Where the number is, as long as this object lives.
        var address: UInt64 { UInt64(UInt(bitPattern: words + Word.generation.rawValue)) }

        /// Relaxed: it says only that there is something to read.
        @inline(__always)
        static func value(at address: UInt64) -> UInt64 {
            UnsafePointer<Atomic<UInt64>>(bitPattern: UInt(address))?.pointee.load(ordering: .relaxed) ?? 0
        }

        var untold: UInt64 { words[Word.untold.rawValue].load(ordering: .acquiring) }

        /// - Parameter isTold: whether the file says what was removed.
        func raise(isTold: Bool) {
            if !isTold { words[Word.untold.rawValue].wrappingAdd(1, ordering: .acquiringAndReleasing) }
            words[Word.generation.rawValue].wrappingAdd(1, ordering: .acquiringAndReleasing)
        }

        /// Whether nobody else has it attached, or had: who was killed may have left records of which it told nobody. A cache of
        /// another container, say, is not seen.
        var isAlone: Bool {
            var status = shmid_ds()
            return shmctl(identifier, IPC_STAT, &status) == 0 && status.shm_nattch == 1 && status.shm_dtime == 0
        }
    #else
        // Not to be had: the file is looked at once a second.
        let identifier: Int32 = -1
        let token: UInt64 = 0
        init?(token: UInt64) { return nil }
        init?(identifier: Int32, token: UInt64) { return nil }
        var untold: UInt64 { 0 }
        func raise(isTold: Bool) {}
        var isAlone: Bool { false }
    #endif
}

/// A number that many threads read at each lookup.
final class SharedNumber: Sendable {
    #if canImport(Glibc) || canImport(Musl)
        private let number: Atomic<UInt64>
        init(_ value: UInt64) { number = Atomic(value) }
        @inline(__always)
        var value: UInt64 {
            get { number.load(ordering: .relaxed) }
            set { number.store(newValue, ordering: .releasing) }
        }
    #else
        // `Atomic` needs iOS 18 and macOS 15.
        private let number: Mutex<UInt64>
        init(_ value: UInt64) { number = Mutex(value, isContended: true) }
        var value: UInt64 {
            get { number.withLock { $0 } }
            set { number.withLock { $0 = newValue } }
        }
    #endif
}
