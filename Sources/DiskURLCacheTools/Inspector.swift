import DiskURLCache
import Foundation

extension DiskURLCache {
    /// Reads a cache's directory from outside, for tools, tests and bug reports. A program may use the cache at the
    /// same time.
    ///
    /// Reading takes no lock and changes nothing. `remove(_:progress:)`, `trim(toBytes:progress:)` and `rebuildIndex()`
    /// change the directory, as a second process that uses the cache would.
    public struct Inspector: Sendable {
        let directory: URL
        let paths: DiskPaths
        let files: any FileSystem = SystemFiles()
        /// Root may read the caches of all users.
        let owner: FileOwner

        /// Opens a cache's directory for reading. Looks at two folders on the caller's thread, and creates nothing.
        /// - Throws: a `DiskURLCache.Error` if there is no cache in the directory.
        public init(directory: URL) throws(DiskURLCache.Error) {
            self.directory = directory
            paths = DiskPaths(directory: directory.path)
            guard directory.isFileURL else { throw DiskURLCache.Error(.notAFileURL, path: directory.printed) }
            do throws(Errno) {
                owner = .user(try files.status(at: paths.directory + "/.").owner)
            } catch {
                let code: DiskURLCache.Error.Code =
                    switch error.code {
                    case ENOENT: .notACache
                    case ENOTDIR: .obstructed
                    default: .notReadable
                    }
                throw DiskURLCache.Error(code, path: directory.path, errno: error.code)
            }
            do throws(Errno) {
                guard try files.status(at: paths.records).kind == .directory else { throw Errno(ENOENT) }
            } catch {
                guard error.code == EACCES || error.code == EPERM else {
                    throw DiskURLCache.Error(.notACache, path: directory.path, errno: 0)
                }
                throw DiskURLCache.Error(.notReadable, path: directory.path, errno: error.code)
            }
        }

        /// Whether the index on disk can be used. If it is missing, damaged or of a different version, a cache builds
        /// it from the records. Reads the index on the caller's thread.
        public var hasValidIndex: Bool { loadIndex() != nil }

        /// Whether there is an index on disk, valid or not. A program that ends before its cache has saved one leaves
        /// none. Reads the index on the caller's thread.
        public var hasIndex: Bool {
            if case .missing = IndexFile(files: files, paths: paths, owner: owner).load() { false } else { true }
        }

        /// The bytes that the directory takes besides its records: folders and index files, in whole blocks.
        public var overheadOnDisk: Int {
            paths.besidesRecords.reduce(0) { $0 + ((try? files.status(at: $1))?.allocated ?? 0) }
        }

        /// All records of the directory, the most recently used first. Damaged and foreign files that have a record's
        /// name are included, other files are not. Reads a file for each record, on the caller's thread.
        ///
        /// - Parameters:
        ///   - verifyingBodies: whether the bodies are read too, and their checksums verified. If not, a damaged body
        ///     is not noticed.
        ///   - cache: its rules and options count for `Record.freshUntil`; it need not have a directory. Nil: the
        ///     responses' own fields alone.
        ///   - progress: called with the number of records read, and their total.
        /// - Throws: when the directory cannot be read.
        public func records(
            verifyingBodies: Bool = false, by cache: DiskURLCache? = nil,
            progress: (_ done: Int, _ total: Int) -> Void = { _, _ in }
        ) throws(DiskURLCache.Error) -> [Record] {
            var names: [RecordName] = []
            do throws(Errno) {
                try files.list(paths.records) { name in
                    if let name = RecordName(name) { names.append(name) }
                    return true
                }
            } catch {
                throw DiskURLCache.Error(.notReadable, path: paths.records, errno: error.code)
            }
            let positions = loadOrder()
            let now = Date()
            var records: [Record] = []
            records.reserveCapacity(names.count)
            for (done, name) in names.enumerated() {
                progress(done, names.count)
                let reading = reader.read(name, verifyingBodies ? .opened : .tail, limit: .max)
                // The record was removed since the folder was listed: the cache may be in use.
                if case .missing = reading { continue }
                let used = positions[name].map { Date(recordSeconds: $0.accessedAt) }
                let path = paths.records + "/" + name.text
                let status = try? files.status(at: path)
                records.append(Record(name, reading, path: path, status: status, lastUsed: used, by: cache, now: now))
            }
            progress(names.count, names.count)
            // Records that were used within the same second are in the order of the index.
            func rank(_ record: Record) -> (Date, Int) {
                (record.lastUsed ?? .distantPast, positions[record.name]?.position ?? .max)
            }
            return records.sorted { rank($0) > rank($1) }
        }

        /// A record's body, verified; nil if the record was removed or replaced since it was listed, or is damaged.
        public func body(of record: Record) -> Data? {
            let reading = reader.read(record.name, .whole, limit: .max)
            guard case .record(let found) = reading, found.footer.sequence == record.sequence else { return nil }
            return found.body
        }

        var reader: RecordReader { RecordReader(files: files, paths: paths, owner: owner) }

        /// The rows in the order of use, the least recently used first.
        private func loadIndex() -> [IndexRow]? {
            guard case .loaded(let rows, _) = IndexFile(files: files, paths: paths, owner: owner).load() else {
                return nil
            }
            return rows
        }

        /// The position of each record in the order of use, and the time of its last use.
        private func loadOrder() -> [RecordName: (position: Int, accessedAt: UInt32)] {
            var positions: [RecordName: (position: Int, accessedAt: UInt32)] = [:]
            for (position, row) in (loadIndex() ?? []).enumerated() { positions[row.name] = (position, row.accessedAt) }
            return positions
        }
    }
}
