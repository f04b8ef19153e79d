import Foundation

/// Looks into a cache's directory from outside, also while a program uses it: for tools, tests and bug reports.
///
/// Looking takes no lock and changes nothing. ``remove(_:progress:)``, ``trim(toBytes:progress:)`` and
/// ``rebuildIndex()`` do what their names say, as one more process on the directory.
public struct CacheInspector: Sendable {
    public let directory: URL
    let paths: DiskPaths
    let files: any FileSystem = SystemFiles()

    /// - Throws: when there is no cache: nothing is made where nothing is.
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
        guard let records = try? files.status(at: paths.records), records.kind == .directory else {
            throw InspectionError(.notACache, path: directory.path)
        }
    }

    /// How the index on disk looks. Whatever it is, the records count: a cache makes its index anew from them.
    public enum IndexState: String, Sendable {
        case valid
        case missing
        /// Not written by this version, or damaged.
        case rejected
    }

    public var indexState: IndexState { loadIndex().state }

    /// Bytes that the directory takes beside its records: folders and index files.
    public var overhead: Int {
        let names = [
            paths.directory + "/.", paths.records, paths.index, paths.journal, paths.lock, paths.guests,
        ]
        return names.reduce(0) { sum, name in
            sum + ((try? files.status(at: name))?.allocated ?? 0)
        }
    }

    /// How much of each record is read.
    public enum Depth: Sendable {
        /// Header fields and facts.
        case heads
        /// The body too, against its checksum.
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
        let index = loadIndex().index
        let reader = RecordReader(files: files, paths: paths)
        let now = Date()
        var records: [Record] = []
        records.reserveCapacity(names.count)
        for (done, name) in names.enumerated() {
            progress(done, names.count)
            let reading = reader.read(
                name.digest, slot: name.slot, depth == .heads ? .head : .whole, limit: .max >> 1)
            // Gone since it was listed: a cache in use changes while one looks.
            if case .missing = reading { continue }
            let used = index?.row(name.digest, name.slot).map { Date(recordSeconds: $0.accessedAt) }
            records.append(Record(name, reading, status: status(of: name), lastUsed: used, now: now))
        }
        progress(names.count, names.count)
        return records.sorted { ($0.lastUsed ?? .distantPast) > ($1.lastUsed ?? .distantPast) }
    }

    /// A record's body, verified; nil when it is gone, was replaced since, or is damaged.
    public func body(of record: Record) -> Data? {
        let reader = RecordReader(files: files, paths: paths)
        let reading = reader.read(record.name.digest, slot: record.name.slot, .whole, limit: .max >> 1)
        guard case .record(let found) = reading, found.header.sequence == record.sequence else { return nil }
        return found.body
    }

    private func loadIndex() -> (state: IndexState, index: DiskIndex?) {
        var storage = IndexStorage(files, paths)
        return switch storage.load() {
        case .loaded(let index): (.valid, index)
        case .missing: (.missing, nil)
        case .rejected: (.rejected, nil)
        }
    }

    private func status(of name: RecordName) -> FileStatus? {
        paths.withRecord(name.digest, name.slot) { try? files.status(at: $0) }
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
        case .inUse: "\(path) is in use: the process that has it open keeps its index."
        }
    }
}
