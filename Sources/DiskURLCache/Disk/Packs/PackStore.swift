import Foundation

/// Entries of up to 16 KB as records that are appended to pack files: a first version, to be measured. See decision record 0007.
///
/// A record is written once; what changes later is its state alone, one aligned word, from living to dead. So a removal needs no list of
/// its own, and holds when the index is lost. The index is a hint: it says how far it covers each pack, and what was appended since is
/// read from the packs.
///
/// Two locks, as in `DiskStore`. `io` is taken first and held across file operations that change something; that of the `table` is taken
/// last and never held across one. Lookups take the second alone.
final class PackStore: Sendable {
    let configuration: DiskStore.Configuration
    let files: any FileSystem
    let paths: DiskPaths
    let clock: WallClock
    let maintenance: MaintenanceQueue
    let table: Mutex<PackTable>
    private let report: @Sendable (DiskEvent) -> Void
    private let io: Mutex<Section>
    private let processID = getpid()

    /// What file operations need; guarded by `io`.
    struct Section {
        /// The folder of packs as it was opened.
        var folder: FileIdentity?
        var error: DiskStoreError?
        var isInPass = false
        var isClosed = false
        var hasTrash = true
        /// What becomes of rows whose records are gathered and not written: see `flushTail`.
        var gathered: [Gathered] = []
        /// Records that were replaced, and are to be marked dead once the new ones are written.
        var replaced: [IndexRow] = []
        /// Rows that changed since the index was saved.
        var changes = 0
        var events: [DiskEvent] = []
    }

    struct Gathered {
        var row: IndexRow
        /// The row that counts again should the write fail.
        var before: IndexRow?
    }

    init(
        configuration: DiskStore.Configuration, fileSystem: any FileSystem, clock: WallClock,
        maintenance: MaintenanceQueue, report: @escaping @Sendable (DiskEvent) -> Void
    ) {
        self.configuration = configuration.sanitized
        files = fileSystem
        paths = DiskPaths(directory: configuration.directory)
        self.clock = clock
        self.maintenance = maintenance
        self.report = report
        table = Mutex(PackTable(capacity: self.configuration.capacity), isContended: true)
        io = Mutex(Section())
        maintenance.schedule(after: 0)
    }

    var isOwnProcess: Bool { getpid() == processID }

    @discardableResult
    func withIO<Result>(_ body: (inout Section) -> Result) -> Result {
        let (result, events) = io.withLock { io in
            let result = body(&io)
            defer { io.events = [] }
            return (result, io.events)
        }
        for event in events { report(event) }
        return result
    }

    // MARK: Numbers

    var capacity: Int {
        get { table.withLock { $0.capacity } }
        set {
            table.withLock { $0.capacity = max(0, newValue) }
            maintenance.schedule(after: configuration.maintenanceDelay)
        }
    }

    /// A pack of a small cache is smaller, so that a few of them are not the whole cache.
    var packSize: Int { min(max(capacity / 16, 64 << 10), 4 << 20) }

    var largestEntry: Int { min(capacity.share(configuration.maximumEntryShare), PackRecord.maximumBody) }

    /// What the files take. Before the index is read, the files themselves say it.
    var usage: Int {
        if let usage = table.withLock({ $0.isOpen ? $0.footprint : nil }) { return usage }
        var bytes = overhead
        for pack in listPacks() { bytes += (pack.length + 4_095) & ~4_095 }
        return bytes
    }

    var openingError: DiskStoreError? {
        maintenance.perform {
            withIO { io in
                _ = prepare(&io)
                return io.error
            }
        }
    }

    func folderIdentity() -> FileIdentity? {
        guard let status = try? files.status(at: paths.packs), status.kind == .directory else { return nil }
        return status.identity
    }

    // MARK: Lookup

    /// A row with what is needed to read its record.
    private struct Found {
        var row: IndexRow
        var seed: UInt64
        var number: UInt64
        var file: PackFile?
        /// A copy of a record that is not written yet.
        var bytes: UnsafeMutableRawPointer?
    }

    enum Reading {
        case record(PackRecord, EntryMetadata, Data)
        /// Removed, or damaged: the row is to go.
        case gone
        case unreadable
    }

    func mayContain(_ key: RequestKey) -> Bool {
        let name = key.name
        return table.withLock { !$0.isOpen || $0.index.contains(name) }
    }

    func contains(_ key: RequestKey) -> Bool { !records(of: key, isUse: false).isEmpty }

    func variants(of key: RequestKey) -> [StoredVariant] {
        records(of: key, isUse: true).map {
            StoredVariant(StoredEntry(metadata: $0.metadata, body: $0.body), from: .disk)
        }
    }

    /// One for each variant, the most recent first.
    private func records(of key: RequestKey, isUse: Bool) -> [(metadata: EntryMetadata, body: Data)] {
        let found = find(key.name, isUse: isUse)
        if found.isEmpty { return [] }
        let now = clock.now()
        let digest = key.digest
        var best: [(metadata: EntryMetadata, body: Data)] = []
        var hashes: [UInt32] = []
        for found in found {
            if let age = configuration.maximumAccessAge, now.timeIntervalSince1970 - Double(found.row.accessedAt) > age
            {
                if let bytes = found.bytes { free(bytes) }
                continue
            }
            switch read(found) {
            case .record(let record, let metadata, let body):
                guard record.digest == digest else { continue }
                if let age = configuration.maximumStorageAge, now.timeIntervalSince(metadata.storedAt) > age {
                    continue
                }
                if let other = hashes.firstIndex(of: record.varyHash) {
                    if best[other].metadata.sequence < metadata.sequence { best[other] = (metadata, body) }
                } else {
                    hashes.append(record.varyHash)
                    best.append((metadata, body))
                }
            case .gone: suspect(found.row)
            case .unreadable: break
            }
        }
        return best.count < 2 ? best : best.sorted { $0.metadata.sequence > $1.metadata.sequence }
    }

    private func find(_ key: KeyName, isUse: Bool) -> [Found] {
        while true {
            let time = MonotonicTime.nanoseconds
            let found: [Found]? = table.withLock { table in
                guard table.isOpen else { return nil }
                var found: [Found] = []
                table.index.forEachRow(of: key) { row in
                    guard let pack = table.packs[Int(row.pack)] else { return }
                    found.append(Found(row: row, seed: pack.seed(row), number: pack.number, file: pack.file))
                }
                for index in found.indices {
                    let row = found[index].row
                    if let bytes = table.gathered(row), let copy = malloc(row.bytes) {
                        memcpy(copy, bytes, row.bytes)
                        found[index].bytes = copy
                    }
                    _ = table.file(Int(row.pack))
                }
                if isUse, !found.isEmpty { table.index.touch(key, at: time, seconds: clock.now().recordSeconds) }
                return found
            }
            if let found { return found }
            // Without its index a directory of packs cannot be asked: the lookup waits for it.
            maintenance.perform { withIO { _ = prepare(&$0) } }
            if table.withLock({ !$0.isOpen }) { return [] }
        }
    }

    private func read(_ found: Found) -> Reading {
        let length = found.row.bytes
        if let bytes = found.bytes { return decode(bytes, found.row, found.seed) }
        guard let file = found.file ?? open(Int(found.row.pack), number: found.number), let memory = malloc(length)
        else { return .unreadable }
        guard
            let count = try? files.readFully(
                file.descriptor, .init(start: memory, count: length), at: found.row.start)
        else {
            free(memory)
            return .unreadable
        }
        if count < length {
            free(memory)
            return .gone
        }
        return decode(memory, found.row, found.seed)
    }

    /// Verifies the record; the memory is given to its body, or freed.
    private func decode(_ memory: UnsafeMutableRawPointer, _ row: IndexRow, _ seed: UInt64) -> Reading {
        let bytes = UnsafeRawBufferPointer(start: memory, count: row.bytes)
        guard let record = PackRecord(bytes), PackRecord.isLiving(bytes), record.length == bytes.count,
            record.isIntact(bytes, seed: seed),
            let metadata = PackMetadata.decode(
                .init(start: memory + PackRecord.headLength, count: record.metadataLength),
                sequence: record.sequence, isPinned: record.isPinned)
        else {
            free(memory)
            return .gone
        }
        let start = memory + PackRecord.headLength + record.metadataLength
        if record.bodyLength < 1_024 {
            defer { free(memory) }
            return .record(record, metadata, Data(bytes: start, count: record.bodyLength))
        }
        // The body stays where it was read to, and takes the memory with it.
        let whole = OwnedMemory(start: memory)
        return .record(
            record, metadata,
            Data(bytesNoCopy: start, count: record.bodyLength, deallocator: .custom { _, _ in whole.release() }))
    }

    /// The record of a row, whatever its key.
    func read(_ row: IndexRow) -> Reading {
        let found = table.withLock { table -> Found? in
            guard let pack = table.packs[Int(row.pack)] else { return nil }
            var found = Found(row: row, seed: pack.seed(row), number: pack.number, file: table.file(Int(row.pack)))
            if let bytes = table.gathered(row), let copy = malloc(row.bytes) {
                memcpy(copy, bytes, row.bytes)
                found.bytes = copy
            }
            return found
        }
        return found.map { read($0) } ?? .unreadable
    }

    /// Opens a pack to read and to mark; nil where it is not there or not ours.
    func open(_ place: Int, number: UInt64) -> PackFile? {
        if let file = table.withLock({ $0.packs[place]?.number == number ? $0.file(place) : nil }) { return file }
        guard let (file, head, _) = openPack(number) else { return nil }
        table.withLock { table in
            guard let pack = table.packs[place], pack.number == number, pack.secret == head.secret else { return }
            table.keep(file, of: place)
        }
        return file
    }

    func openPack(_ number: UInt64) -> (file: PackFile, head: PackHead, length: Int)? {
        guard let descriptor = try? files.openFile(paths.pack(number), O_RDWR) else { return nil }
        let file = PackFile(descriptor, files)
        guard let status = try? files.status(descriptor), status.kind == .regular, status.links == 1 else { return nil }
        var bytes = [UInt8](repeating: 0, count: PackHead.length)
        let count = bytes.withUnsafeMutableBytes { (try? files.readFully(descriptor, $0, at: 0)) ?? 0 }
        guard count == PackHead.length, let head = bytes.withUnsafeBytes({ PackHead($0, number: number) })
        else { return nil }
        return (file, head, status.size)
    }

    private func suspect(_ row: IndexRow) {
        table.withLock { if $0.suspects.count < 4_096 { $0.suspects.append(row) } }
        maintenance.schedule(after: configuration.maintenanceDelay)
    }

    func noteUses(_ uses: [(name: KeyName, time: UInt64)]) {
        let (now, time) = (clock.now(), MonotonicTime.nanoseconds)
        let noted = uses.map { use in
            let ago = Double(time > use.time ? time - use.time : 0) * 1e-9
            return IndexUse(key: use.name, time: min(use.time, time), seconds: (now - ago).recordSeconds)
        }
        table.withLock { $0.index.note(noted) }
    }
}
