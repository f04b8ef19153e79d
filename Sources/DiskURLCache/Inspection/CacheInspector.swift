import Foundation

/// Looks into a cache's directory from outside, also while a program uses it: for tools, tests and bug reports.
///
/// Looking takes no lock and changes nothing. ``remove(_:progress:)``, ``trim(toBytes:progress:)`` and
/// ``rebuildIndex()`` do what their names say, as one more process on the directory.
public struct CacheInspector: Sendable {
    let directory: URL
    let paths: DiskPaths
    let files: any FileSystem = SystemFiles()
    /// Root looks into the caches of all users.
    let owner: FileOwner

    /// Opens a cache's directory for looking. Reads the state of two folders on the caller's thread.
    /// - Throws: a ``CacheError`` when there is no cache at that place. Nothing is made there.
    public init(directory: URL) throws(CacheError) {
        self.directory = directory
        paths = DiskPaths(directory: directory.path)
        guard directory.isFileURL else { throw CacheError(.notAFileURL, path: directory.absoluteString) }
        do throws(Errno) {
            let status = try files.status(at: paths.directory + "/.")
            guard status.kind == .directory else { throw Errno(ENOTDIR) }
            owner = .user(status.owner)
        } catch {
            let code: CacheError.Code =
                switch error.code {
                case ENOENT: .notACache
                case ENOTDIR: .obstructed
                default: .notReadable
                }
            throw CacheError(code, path: directory.path, errno: error.code)
        }
        do throws(Errno) {
            guard try files.status(at: paths.records).kind == .directory else { throw Errno(ENOTDIR) }
        } catch {
            guard error.code == EACCES || error.code == EPERM else {
                throw CacheError(.notACache, path: directory.path)
            }
            throw CacheError(.notReadable, path: directory.path, errno: error.code)
        }
    }

    /// Whether the index on disk can be used. A cache makes one that is missing, damaged or of another version anew from the
    /// records. Reads the index on the caller's thread.
    public var hasValidIndex: Bool { loadIndex() != nil }

    /// Bytes that the directory takes besides its records: folders and index files, in allocated blocks.
    public var overhead: Int {
        paths.besidesRecords.reduce(0) { $0 + ((try? files.status(at: $1))?.allocated ?? 0) }
    }

    /// Every record of the directory, the most recently used first. Damaged and foreign files under a record's name are
    /// among them; other files are not. Reads one file for each on the caller's thread.
    ///
    /// - Parameters:
    ///   - verifyingBodies: reads the bodies too and verifies their checksums; without it a damaged body is not noticed.
    ///   - progress: called with how many are read, and of how many.
    /// - Throws: when the directory cannot be read.
    public func records(
        verifyingBodies: Bool = false, progress: (_ done: Int, _ total: Int) -> Void = { _, _ in }
    ) throws(CacheError) -> [Record] {
        var names: [RecordName] = []
        do throws(Errno) {
            try files.list(paths.records) { name in
                if let name = RecordName(name) { names.append(name) }
            }
        } catch {
            throw CacheError(.notReadable, path: paths.records, errno: error.code)
        }
        let places = loadOrder()
        let reader = RecordReader(files: files, paths: paths, owner: owner)
        let now = Date()
        var records: [Record] = []
        records.reserveCapacity(names.count)
        for (done, name) in names.enumerated() {
            progress(done, names.count)
            let reading = reader.read(name, verifyingBodies ? .whole : .head, limit: .max >> 1)
            // Gone since it was listed: a cache in use changes while one looks.
            if case .missing = reading { continue }
            let used = places[name].map { Date(recordSeconds: $0.accessedAt) }
            let path = paths.records + "/" + name.text
            records.append(
                Record(name, reading, path: path, status: status(of: name), lastUsed: used, now: now))
        }
        progress(names.count, names.count)
        // Within a second the order of the index tells.
        func rank(_ record: Record) -> (Date, Int) {
            (record.lastUsed ?? .distantPast, places[record.name]?.place ?? .max)
        }
        return records.sorted { rank($0) > rank($1) }
    }

    /// A record's body, verified; nil when it is gone, was replaced since, or is damaged.
    public func body(of record: Record) -> Data? {
        let reader = RecordReader(files: files, paths: paths, owner: owner)
        let reading = reader.read(record.name, .whole, limit: .max >> 1)
        guard case .record(let found) = reading, found.header.sequence == record.sequence else { return nil }
        return found.body
    }

    /// In the order of use, the least recent first.
    private func loadIndex() -> [IndexRow]? {
        guard case .loaded(let rows, _) = IndexFile(files: files, paths: paths, owner: owner).load() else { return nil }
        return rows
    }

    /// Each record's place in the order of use, and when it was used.
    private func loadOrder() -> [RecordName: (place: Int, accessedAt: UInt32)] {
        var places: [RecordName: (place: Int, accessedAt: UInt32)] = [:]
        for (place, row) in (loadIndex() ?? []).enumerated() { places[row.name] = (place, row.accessedAt) }
        return places
    }

    private func status(of name: RecordName) -> FileStatus? {
        paths.withRecord(name) { try? files.status(at: $0) }
    }
}
