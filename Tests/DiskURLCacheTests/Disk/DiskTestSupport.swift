import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

extension RequestKey {
    /// The key of a made-up URL.
    static func test(_ text: String, host: String = "example.org") -> RequestKey {
        RequestKey(text: text, uri: "http://\(host)/\(text)", isForHead: false)
    }
}

extension StoredEntry {
    /// An entry with a few header fields. `language` makes it a variant.
    static func test(
        _ body: Data, sequence: UInt64 = 1, storedAt: Date = Date(), language: String? = nil, tags: [String] = [],
        isPinned: Bool = false, url: String? = "http://example.org/", userInfo: [String: PropertyValue] = [:],
        fields: HeaderFields = ["Content-Type": "text/plain", "ETag": "\"abc\"", "Cache-Control": "max-age=3600"]
    ) -> StoredEntry {
        let vary =
            language.map {
                VaryKey(
                    fields: [.init(name: "accept-language", value: SHA256Digest.digest(of: $0))], matchesNothing: false)
            } ?? .none
        let response = StoredResponse(
            method: "GET", status: 200, fields: fields, requestTime: storedAt, responseTime: storedAt, vary: vary)
        return StoredEntry(
            metadata: EntryMetadata(
                sequence: sequence, url: url, response: .http(response), storedAt: storedAt, placement: .memoryAndDisk,
                userInfo: userInfo, tags: tags, isPinned: isPinned),
            body: body)
    }
}

extension IndexRow {
    /// A record of which only name and size are known.
    init(_ name: RecordName, allocated: Int, accessedAt: UInt32) {
        self.init(
            key: name.key, blocks: UInt32(clamping: allocated / 512), accessedAt: accessedAt, slot: name.slot,
            flags: .partial)
    }

    /// A row of a made-up record.
    static func test(
        _ key: RequestKey, slot: UInt8 = 0, allocated: Int = 4096, accessedAt: UInt32 = 0
    ) -> IndexRow {
        IndexRow(RecordName(key: key.name, slot: slot), allocated: allocated, accessedAt: accessedAt)
    }
}

/// A body that tells its number, of a length that follows from it: some are large.
enum NumberedBody {
    static func make(_ number: Int) -> Data {
        let length = number % 30 == 0 ? 40_000 : number % 500
        return withUnsafeBytes(of: number) { Data($0) } + testBody(number, length: length)
    }

    /// Nil for a body that is not whole, or was never made.
    static func number(of body: Data) -> Int? {
        guard body.count >= 8 else { return nil }
        let number = body.withUnsafeBytes { $0.loadUnaligned(as: Int.self) }
        return number >= 0 && body == make(number) ? number : nil
    }
}

extension DiskStore {
    private static let hours = Mutex<UInt64>(0)

    /// What a lookup does that comes an hour after the last one: it looks for what others have changed. No lookup after
    /// it does so before the next call of this method.
    func lookLater() {
        let hours = Self.hours.withLock { hours in
            hours += 1
            return hours
        }
        checkIfDue(at: MonotonicTime.nanoseconds + hours * 3_600_000_000_000)
    }
}

/// What a store told.
final class EventLog: Sendable {
    private let log = Mutex<[DiskEvent]>([])

    var events: [DiskEvent] { log.withLock { $0 } }

    var report: @Sendable (DiskEvent) -> Void {
        { event in self.log.withLock { $0.append(event) } }
    }

    func count(_ isCounted: (DiskEvent) -> Bool) -> Int {
        events.filter(isCounted).count
    }
}

/// A cache directory in a scratch directory, and what tests do with it.
final class DiskFixture: Sendable {
    let scratch: ScratchDirectory
    let log = EventLog()
    var directory: String { scratch.url.path + "/cache" }
    var records: String { directory + "/records" }

    init(_ label: String = #function) throws {
        scratch = try ScratchDirectory(label)
    }

    func open(
        capacity: Int = 100 << 20, files: any FileSystem = SystemFiles(), clock: WallClock = .system,
        _ change: (inout DiskConfiguration) -> Void = { _ in }
    ) -> DiskStore {
        var configuration = DiskConfiguration(directory: directory, capacity: capacity)
        change(&configuration)
        return DiskStore(configuration: configuration, fileSystem: files, clock: clock, report: log.report)
    }

    /// Names of the record files.
    func recordNames() -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: records)) ?? []).sorted()
    }

    func recordPath(_ key: RequestKey, slot: Int = 0) -> String {
        records + "/" + key.name.hex + String(slot)
    }

    /// The path of the only record of a key.
    func onlyRecord(_ key: RequestKey) -> String? {
        let names = recordNames().filter { $0.hasPrefix(key.name.hex) }
        return names.count == 1 ? records + "/" + names[0] : nil
    }

    /// Bytes that the record files take, as `du` counts.
    func allocatedByRecords() -> Int {
        recordNames().reduce(0) { $0 + ((try? SystemFiles().status(at: records + "/" + $1))?.allocated ?? 0) }
    }

    /// Bytes that the whole directory takes.
    func allocated() -> Int { SystemFiles().allocated(at: directory) }
}

extension SystemFiles {
    /// Bytes that a file or a folder takes with all that is in it, as `du -s` counts.
    func allocated(at path: String) -> Int {
        guard let status = try? status(at: path) else { return 0 }
        guard status.kind == .directory else { return status.allocated }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return names.reduce(status.allocated) { $0 + allocated(at: path + "/" + $1) }
    }
}

extension DiskStore {
    /// Writes an entry that is stored just now.
    @discardableResult
    func store(_ entry: StoredEntry, for key: RequestKey) -> DiskWriteResult {
        write(entry, for: key, usedAt: MonotonicTime.nanoseconds)
    }

    /// Writes an entry for a key that no request has.
    func store(_ entry: StoredEntry, for key: DiskKey) {
        let record = PreparedRecord(entry, for: key, keepsURL: true)
        _ = write(record, .memory, entry.metadata, for: key, usedAt: MonotonicTime.nanoseconds)
    }

    /// A use that memory answered just now.
    func touch(_ key: RequestKey) {
        noteUses([(key.name, MonotonicTime.nanoseconds)])
    }

    /// The body of the most recent variant.
    func body(_ key: RequestKey) -> Data? {
        variants(of: key).first?.load()?.body
    }
}

/// What tests want to know of one record.
struct DiskRecordInfo: Sendable {
    let name: RecordName
    let metadata: EntryMetadata
    let bodyLength: Int
    /// Bytes on disk, in allocated blocks.
    let allocated: Int
    let accessedAt: Date
}

extension DiskStore {
    /// Calls with the metadata and the body length of each record, the least recently used first.
    func forEachRecord(_ body: (DiskRecordInfo) -> Void) {
        _ = refresh()
        for row in catalog.read({ $0.inOrder }) {
            guard case .record(let record) = reader.read(row.name, .tail, limit: .max >> 1) else { continue }
            body(
                DiskRecordInfo(
                    name: row.name, metadata: record.metadata, bodyLength: record.footer.bodyLength,
                    allocated: record.status.allocated, accessedAt: Date(recordSeconds: row.accessedAt)))
        }
    }
}

extension TieredStore {
    /// A store as a process has it, over its disk.
    static func over(_ disk: DiskStore, _ maintenance: MaintenanceQueue) -> TieredStore {
        TieredStore(
            memory: MemoryCache(costLimit: 8 << 20), maximumEntryFraction: 0.5,
            disk: disk, maintenance: maintenance, fallbacks: [], hub: EventHub(), clock: disk.clock)
    }
}

extension DiskStore {
    func examine(_ key: KeyName, _ io: inout Section, verifyingBodies: Bool = false) {
        records.examine(key, &io.events, suspects: verifyingBodies ? .all : [])
    }
}

extension IndexFile {
    static func encode(_ index: DiskIndex) -> [UInt8] { encode(Array(index.inOrder)) }

    static func encode(_ rows: [IndexRow]) -> [UInt8] { encode(count: rows.count) { rows.forEach($0) } }
}

extension DiskWriteResult {
    /// The words of the reason, which have the system's error; nil if the disk did not refuse the entry.
    var refusal: String? { if case .dropped(let reason) = self { reason.description } else { nil } }

    static func words(_ errno: Int32) -> String { DiskURLCache.Reason.diskFailed(errno: errno).description }
}

extension DiskIndex {
    /// Adds a row as the most recently used one, among rows that this process has not used.
    mutating func append(_ row: IndexRow) { put(row, usedAt: 0) }
}

extension [IndexRow] {
    /// An index of the rows, in their order.
    var index: DiskIndex {
        var index = DiskIndex()
        for row in self { index.append(row) }
        return index
    }
}

extension ScratchDirectory {
    /// Whether a folder takes more space after there were many files in it. On some file systems, such as tmpfs, none
    /// does.
    static let foldersGrow: Bool = {
        guard let scratch = try? ScratchDirectory("grow"), (try? grow(scratch.url.path)) != nil else { return false }
        return (try? SystemFiles().status(at: scratch.url.path).allocated > 64 << 10) == true
    }()

    /// The reason of a test that is skipped without it.
    static let needsFoldersThatGrow: Comment = "needs a file system on which folders grow"
}
