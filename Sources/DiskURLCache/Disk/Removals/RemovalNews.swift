import Foundation

/// What caches on the directory tell each other of removals: a row in the file `removals`, and a number in shared memory that
/// says that there is one.
///
/// A removal is told before its files go and again when they are gone. Who holds the number to be unchanged after a write or
/// a read knows that no removal began meanwhile; and who reads a file while it is being removed is told once more.
final class RemovalNews: Sendable {
    private let log: RemovalLog
    private let files: any FileSystem
    private let records: String
    /// Tells our own rows.
    private let writer = UInt64.random(in: .min ... .max)
    private let processID = getpid()

    /// Guarded by the lock around it, held while news are taken in: who comes second finds them taken in. Taken after a key's
    /// stripe and before all other locks.
    private struct Reading {
        var log = RemovalLog.State()
        var untold: UInt64 = 0
    }

    /// Guarded by the lock around it, held across file operations; taken after `reading`.
    private struct Attachment {
        /// The last one counts. Others stay: a lookup may read them at this moment.
        var all: [SharedGeneration] = []
        /// Whether it was tried: until then each lookup looks at the file.
        var isDecided = false
        /// The system has no such memory, or it was given up.
        var isHopeless = false
    }

    /// The records' folder as this cache knows it.
    private let folder = Mutex<FileIdentity?>(nil)
    private let reading = Mutex(Reading())
    private let attachment = Mutex(Attachment())
    private let sharesMemory: Bool
    /// Directories that are replaced time and again cost a page each: then the file must do.
    private static let maximumAttachments = 16

    // Read by each lookup. The first two are changed under `reading` only.
    private let generation = Generation()
    private let seen = SharedNumber(0)
    /// When the file is to be looked at, in nanoseconds of the monotonic clock; 0 for at once.
    private let nextLook = SharedNumber(0)

    init(
        _ files: any FileSystem, _ paths: DiskPaths, sharesMemory: Bool,
        mayLock: @escaping @Sendable () -> Bool = { true }
    ) {
        self.files = files
        log = RemovalLog(files: files, paths: paths, mayLock: mayLock)
        records = paths.records
        self.sharesMemory = sharesMemory
    }

    private var isOwnProcess: Bool { getpid() == processID }

    // MARK: Hearing

    /// Whether there may be something to take in: a few loads and comparisons where there is not.
    @inline(__always)
    func hasNews(at now: UInt64) -> Bool {
        now >= nextLook.value || generation.value != seen.value
    }

    /// For what may cost a look at the file: where no memory is shared, a lookup sees news a second later.
    /// - Parameter isCertain: also where memory is shared. It may be another one by now.
    func lookNow(isCertain: Bool) {
        if isCertain || attachment.withLock({ $0.all.isEmpty }) { nextLook.value = 0 }
    }

    /// Hands over what other caches removed since the last time. Callers that come meanwhile wait until it is taken in.
    func take(_ apply: (RemovalLog.News) -> Void) {
        reading.withLock { reading in
            let shared = attachment.withLock { attachment in
                // Set before anything is read: what happens from now on is seen the next time.
                nextLook.value = attachment.isDecided ? MonotonicTime.nanoseconds &+ 1_000_000_000 : 0
                return attachment.all.last
            }
            let isNew = generation.attach(shared)
            let now = generation.value
            var news = log.news(&reading.log, for: writer, isCertain: isNew || now != seen.value)
            if let shared {
                if isNew { reading.untold = shared.untold }
                if reading.untold != shared.untold {
                    reading.untold = shared.untold
                    news = .everything
                }
                // Others share another one by now.
                if let segment = reading.log.header?.segment, segment != shared.identifier { attach() }
            }
            if isFolderReplaced() { news = .everything }
            if let news { apply(news) }
            seen.value = now
        }
    }

    /// Whether another process replaced the records' folder, as an older version does, or somebody by hand.
    private func isFolderReplaced() -> Bool {
        folder.withLock { folder in
            guard let status = try? files.status(at: records), status.kind == .directory else { return false }
            defer { folder = status.identity }
            return folder != nil && folder != status.identity
        }
    }

    /// For this cache to replace the folder of records, and to set the new one: nobody looks at it meanwhile.
    func withFolder<Result>(_ replace: (inout FileIdentity?) -> Result) -> Result {
        folder.withLock { replace(&$0) }
    }

    /// This cache made the folder of records, or found it before it read any.
    func noteFolder(_ identity: FileIdentity?) {
        if let identity { folder.withLock { $0 = identity } }
    }

    // MARK: Telling

    /// Tells all other caches. Never waits long, and never fails: where it cannot be told what was removed, it is told that
    /// something was.
    func tell(_ removal: SharedRemoval, capacity: Int) {
        guard isOwnProcess else { return }
        attachIfNeeded()
        let row = RemovalRow(removal: removal, writer: writer)
        let header = log.append(row, limit: RemovalLog.limit(capacity: capacity))
        let all = attachment.withLock { $0.all }
        if let header, header.segment != all.last?.identifier { attach() }
        // Also those before: another cache may have it still.
        for shared in all { shared.raise(isTold: header != nil) }
        if let last = attachment.withLock({ $0.all.last }), last !== all.last { last.raise(isTold: header != nil) }
    }

    /// See `RemovalLog.sweep`.
    func sweep() { log.sweep() }

    /// Whether no other cache has the directory open, or had it since this one opened it, as far as is known.
    var isAlone: Bool { attachment.withLock { $0.all.last }?.isAlone ?? false }

    // MARK: Sharing

    /// Whether removals are told through memory, and not by the file alone.
    var isShared: Bool { attachment.withLock { !$0.all.isEmpty } }

    /// Costs next to nothing where the memory is shared.
    func attachIfNeeded() {
        if attachment.withLock({ !$0.all.isEmpty || $0.isHopeless }) { return }
        attach()
    }

    /// The directory cannot be used now: lookups need not look at it each time.
    func attachLater() {
        attachment.withLock { $0.isDecided = true }
    }

    /// Shares the memory whose number is in the file, or puts the number of a new one there.
    private func attach() {
        guard isOwnProcess else { return }
        attachment.withLock { attachment in
            attachment.isDecided = true
            guard sharesMemory, attachment.all.count < Self.maximumAttachments else {
                attachment.isHopeless = true
                return
            }
            var shared: SharedGeneration?
            let header = log.choose { header in
                if let last = attachment.all.last, last.identifier == header.segment, last.token == header.token {
                    shared = last
                } else {
                    shared =
                        SharedGeneration(identifier: header.segment, token: header.token)
                        ?? SharedGeneration(token: header.token)
                }
                return shared?.identifier ?? -1
            }
            // The file is another process's at this moment, or cannot be written: the next pass tries again.
            guard header != nil else { return }
            guard let shared else {
                attachment.isHopeless = true
                return
            }
            guard shared !== attachment.all.last else { return }
            attachment.all.append(shared)
            nextLook.value = 0
        }
    }

    /// For tests: at once (0), or never.
    func setNextLook(_ time: UInt64) {
        nextLook.value = time
    }
}

/// The shared number as lookups read it: 0 where no memory is shared.
private final class Generation: Sendable {
    #if canImport(Glibc) || canImport(Musl)
        /// Where it is. `SharedGeneration` keeps it there.
        private let address = SharedNumber(0)

        @inline(__always)
        var value: UInt64 {
            let address = address.value
            return address == 0 ? 0 : SharedGeneration.value(at: address)
        }

        /// True where it is another one.
        func attach(_ shared: SharedGeneration?) -> Bool {
            guard let shared, shared.address != address.value else { return false }
            address.value = shared.address
            return true
        }
    #else
        var value: UInt64 { 0 }
        func attach(_ shared: SharedGeneration?) -> Bool { false }
    #endif
}
