import Foundation

/// Looks into a cache's directory from outside, also while a program uses it: for tools, tests and bug reports.
///
/// Looking takes no lock and changes nothing. ``remove(_:progress:)``, ``trim(toBytes:progress:)`` and
/// ``rebuildIndex()`` do what their names say, as one more process on the directory.
public struct CacheInspector: Sendable {
    public let directory: URL
    let paths: DiskPaths
    let files: any FileSystem = SystemFiles()

    /// - Throws: an ``InspectionError`` when there is no cache at that place. Nothing is made there.
    public init(directory: URL) throws(InspectionError) {
        self.directory = directory
        paths = DiskPaths(directory: directory.path)
        guard directory.isFileURL else { throw InspectionError(.notFound, path: directory.absoluteString) }
        do throws(Errno) {
            let status = try files.status(at: paths.directory + "/.")
            guard status.kind == .directory else { throw Errno(ENOTDIR) }
        } catch {
            let code: InspectionError.Code =
                switch error.code {
                case ENOENT: .notFound
                case ENOTDIR: .notADirectory
                default: .notReadable
                }
            throw InspectionError(code, path: directory.path, errno: error.code)
        }
        do throws(Errno) {
            guard try files.status(at: paths.records).kind == .directory else { throw Errno(ENOTDIR) }
        } catch {
            let isForbidden = error.code == EACCES || error.code == EPERM
            throw InspectionError(isForbidden ? .notReadable : .notACache, path: directory.path, errno: error.code)
        }
    }

    /// The state of the index on disk. A cache makes a missing or rejected index anew from the records.
    public enum IndexState: String, Sendable {
        case valid
        case missing
        /// Not written by this version, or damaged.
        case rejected
    }

    public var indexState: IndexState { loadIndex().state }

    /// Bytes that the directory takes besides its records: folders and index files.
    public var overhead: Int {
        paths.besidesRecords.reduce(0) { $0 + ((try? files.status(at: $1))?.allocated ?? 0) }
    }

    /// How much of each record is read.
    public enum Depth: Sendable {
        /// Everything but the body.
        case heads
        /// The body too; its checksum is verified.
        case verified
    }

    /// Every record of the directory, the most recently used first. Damaged and foreign files under a record's name are
    /// among them; other files are not.
    ///
    /// - Parameters:
    ///   - depth: how much of each is read.
    ///   - progress: called with how many are read, and of how many.
    public func records(
        _ depth: Depth = .heads, progress: (_ done: Int, _ total: Int) -> Void = { _, _ in }
    ) throws(InspectionError) -> [Record] {
        var names: [RecordName] = []
        do throws(Errno) {
            try files.list(paths.records) { name in
                if let name = RecordName(name) { names.append(name) }
            }
        } catch {
            throw InspectionError(.notReadable, path: paths.records, errno: error.code)
        }
        let (index, places) = loadOrder()
        let reader = RecordReader(files: files, paths: paths)
        let now = Date()
        var records: [Record] = []
        records.reserveCapacity(names.count)
        for (done, name) in names.enumerated() {
            progress(done, names.count)
            let reading = reader.read(name, depth == .heads ? .head : .whole, limit: .max >> 1)
            // Gone since it was listed: a cache in use changes while one looks.
            if case .missing = reading { continue }
            let used = index?.row(name).map { Date(recordSeconds: $0.accessedAt) }
            records.append(Record(name, reading, status: status(of: name), lastUsed: used, now: now))
        }
        progress(names.count, names.count)
        // Within a second the order of the index tells.
        func rank(_ record: Record) -> (Date, Int) { (record.lastUsed ?? .distantPast, places[record.name] ?? .max) }
        return records.sorted { rank($0) > rank($1) }
    }

    /// A record's body, verified; nil when it is gone, was replaced since, or is damaged.
    public func body(of record: Record) -> Data? {
        let reader = RecordReader(files: files, paths: paths)
        let reading = reader.read(record.name, .whole, limit: .max >> 1)
        guard case .record(let found) = reading, found.header.sequence == record.sequence else { return nil }
        return found.body
    }

    private func loadIndex() -> (state: IndexState, index: DiskIndex?) {
        var storage = IndexStorage(files, paths)
        return switch storage.load() {
        case .loaded(let index): (.valid, index)
        case .missing: (.missing, nil)
        case .rejected, .unreadable: (.rejected, nil)
        }
    }

    /// The index, and each record's place in the order of use.
    private func loadOrder() -> (index: DiskIndex?, places: [RecordName: Int]) {
        guard let index = loadIndex().index else { return (nil, [:]) }
        var places: [RecordName: Int] = [:]
        places.reserveCapacity(index.count)
        index.forEachLeastRecentFirst { row in
            places[row.name] = places.count
            return true
        }
        return (index, places)
    }

    private func status(of name: RecordName) -> FileStatus? {
        paths.withRecord(name) { try? files.status(at: $0) }
    }
}

/// Why a directory cannot be inspected.
public struct InspectionError: Swift.Error, Sendable, Hashable, CustomStringConvertible {
    public enum Code: Sendable, Hashable {
        case notFound
        case notADirectory
        /// A directory, but not one that a `DiskURLCache` made.
        case notACache
        case notReadable
        /// No permission, or a file system that is read-only.
        case notWritable
        /// Another process maintains the index.
        case inUse
    }

    public let code: Code
    public let path: String
    public let errno: Int32

    init(_ code: Code, path: String, errno: Int32 = 0) {
        self.code = code
        self.path = path
        self.errno = errno
    }

    public var description: String {
        switch code {
        case .notFound: "There is nothing at \(path)."
        case .notADirectory: "\(path) is not a directory."
        case .notACache: "\(path) is not a cache: it has no folder \"records\"."
        case .notReadable: "\(path) cannot be read: \(String(cString: strerror(errno)))."
        case .notWritable: "\(path) cannot be written: \(String(cString: strerror(errno)))."
        case .inUse: "\(path) is in use: the process that has it open keeps its index."
        }
    }
}
