import DiskURLCache
import Foundation

extension DiskURLCache {
    /// Writes a cache's events to a file, as one JSON object on each line, for `urlcache watch` and `urlcache report`.
    /// It writes for as long as you keep a reference to it.
    ///
    /// The file contains URLs (without user names and passwords) unless `Configuration.keepsURLs` is false. It has mode
    /// 0600. The log does not write to a symbolic link, a file with a second name, or a file of another user.
    ///
    /// Before the file exceeds the limit, it is renamed to `….1`, which replaces an older file of that name, and a new
    /// file is begun. If another process removes or renames the file, a new one is begun as well. If the disk is too
    /// slow, up to 10,000 events wait to be written; later events are lost.
    public final class EventLog: Sendable {
        /// The name of the log in a cache's own directory, in which the inspector looks for it.
        public static let fileName = "events.jsonl"

        private struct State {
            var waiting = 0
            var listener: UInt64?
        }

        static let waitingLimit = 10_000

        private let cache: DiskURLCache
        let path: String
        private let limit: Int
        private let keepsURLs: Bool
        private let files: any FileSystem = SystemFiles()
        /// Writes the lines: loads do not wait for the log.
        let queue = DispatchQueue(label: "DiskURLCache.eventLog", qos: .utility)
        private let state = Mutex(State())

        /// Begins to write. If the file cannot be written, events are lost; there is no other effect.
        /// - Parameters:
        ///   - cache: the cache whose events are written.
        ///   - file: the file; nil means `fileName` in the cache's directory. It does not count towards the cache's
        ///     capacity.
        ///   - limit: the size in bytes at which a new file is begun.
        public init(_ cache: DiskURLCache, file: URL? = nil, limit: Int = 4 << 20) {
            self.cache = cache
            let directory = cache.core.configuration.directory ?? DiskURLCache.defaultDirectory
            path = (file ?? directory.appendingPathComponent(Self.fileName)).path
            self.limit = max(4_096, limit)
            keepsURLs = cache.core.configuration.keepsURLs
            let id = cache.core.hub.addListener { [weak self] event in self?.receive(event) }
            state.withLock { $0.listener = id }
        }

        deinit {
            if let listener = state.withLock({ $0.listener }) { cache.core.hub.removeListener(listener) }
        }

        /// Returns when all events so far are in the file. Waits on the caller's thread.
        public func flush() {
            queue.sync {}
        }

        private func receive(_ event: Event) {
            let now = Date()
            let hasRoom = state.withLock { state in
                guard state.waiting < Self.waitingLimit else { return false }
                state.waiting += 1
                return true
            }
            guard hasRoom else { return }
            queue.async {
                self.state.withLock { $0.waiting -= 1 }
                self.write(Line(at: now.timeIntervalSince1970, event: self.keepsURLs ? event : event.withoutURL))
            }
        }

        /// One line of the file.
        struct Line: Codable {
            /// Seconds since 1970.
            var at: TimeInterval
            var event: Event
            /// The code of the `URLError` with which a load failed.
            var urlError: Int?

            init(at time: TimeInterval, event: Event) {
                at = time
                self.event = event
                if case .load(let load) = event { urlError = (load.error as? URLError)?.code.rawValue }
            }

            /// Nil if a number is impossible for an event: in a damaged file sums of numbers could overflow, and dates
            /// be invalid.
            var entry: (date: Date, event: Event)? {
                guard abs(at) < Event.mostSeconds, event.isPlausible else { return nil }
                var event = event
                if case .load(var load) = event, let urlError {
                    load.error = (URLError.Code(rawValue: urlError) as URLError.Code?).map { URLError($0) }
                    event = .load(load)
                }
                return (Date(timeIntervalSince1970: at), event)
            }
        }

        private func write(_ event: Line) {
            let encoder = JSONEncoder()
            encoder.dateEncodingStrategy = .secondsSince1970
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            guard var line = try? encoder.encode(event) else { return }
            line.append(UInt8(ascii: "\n"))
            guard let file = openFile(forWriting: line.count) else { return }
            _ = line.withUnsafeBytes { try? files.writeFully(file, $0) }
            files.closeQuietly(file)
        }

        /// The file, opened, with room for one more line.
        private func openFile(forWriting length: Int) -> Int32? {
            guard let (file, size) = openFile() else { return nil }
            guard size > 0, size + length > limit else { return file }
            if (try? files.rename(path, to: path + ".1")) == nil {
                // If renaming fails, the file must still stay within the limit.
                try? files.truncate(file, 0)
                return file
            }
            files.closeQuietly(file)
            return openFile()?.file
        }

        /// Called for each line, since another process may have removed or renamed the file. If it cannot be opened,
        /// the event is lost, and the next event tries again.
        private func openFile() -> (file: Int32, size: Int)? {
            guard let file = try? files.openFile(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK) else {
                return nil
            }
            guard let status = try? files.status(file), isOurs(status), isPrivate(file, status) else {
                files.closeQuietly(file)
                return nil
            }
            return (file, status.size)
        }

        private func isOurs(_ status: FileStatus) -> Bool {
            status.kind == .regular && status.links == 1 && FileOwner.process.owns(status)
        }

        /// Makes the file private; false if other users can read it and that cannot be changed.
        private func isPrivate(_ file: Int32, _ status: FileStatus) -> Bool {
            if status.permissions == 0o600 { return true }
            return (try? files.setPermissions(file, 0o600)) != nil
        }

        /// The events of a log with their times, those of the older file first. The time of a load is that of its end.
        /// Reads both files on the caller's thread. Empty if there is no log.
        ///
        /// `DiskURLCache.Report.error` is restored only if it was a `URLError`, without its details. Lines that are not
        /// events are skipped.
        public static func entries(in file: URL) -> [(date: Date, event: Event)] {
            [file.path + ".1", file.path].flatMap { path in
                FileManager.default.contents(atPath: path).map { entries(from: $0) } ?? []
            }
        }

        /// The same for whole lines of a log, such as the lines that were added since it was last read.
        public static func entries(from lines: Data) -> [(date: Date, event: Event)] {
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .secondsSince1970
            return lines.split(separator: UInt8(ascii: "\n")).compactMap {
                (try? decoder.decode(Line.self, from: $0))?.entry
            }
        }
    }
}

extension DiskURLCache.Event {
    fileprivate static let mostSeconds = 1e11

    /// Whether the numbers are possible for an event: at most a terabyte, and 3,000 years. So a log must have millions
    /// of lines before a sum of them overflows.
    fileprivate var isPlausible: Bool {
        let counts = 0...Int(clamping: Int64(1) << 40)
        return switch self {
        case .load(let load): counts.contains(load.bytes) && abs(load.duration) < Self.mostSeconds
        case .stored(_, let bytes, _): counts.contains(bytes)
        case .evicted(let entries, let bytes): counts.contains(entries) && counts.contains(bytes)
        case .notStored, .invalidated, .problem: true
        }
    }

    fileprivate var withoutURL: DiskURLCache.Event {
        switch self {
        case .load(var load):
            load.url = nil
            if load.notStoredReason == .never { load.notStoredReason = .neverByOptions }
            if load.outcome == .bypass(.never) { load.outcome = .bypass(.neverByOptions) }
            if load.outcome == .notAllowed(.never) { load.outcome = .notAllowed(.neverByOptions) }
            return .load(load)
        case .stored(_, let bytes, let isInMemoryOnly):
            return .stored(url: nil, bytes: bytes, inMemoryOnly: isInMemoryOnly)
        case .notStored(_, let reason):
            return .notStored(url: nil, reason: reason == .never ? .neverByOptions : reason)
        case .invalidated(_, let reason): return .invalidated(url: nil, reason: reason)
        case .problem(let error):
            switch error.code {
            // The message quotes the pattern, which may contain a URL, or names the URL of a load.
            case .invalidPattern, .invalidRule, .loaderMissing: return .problem(DiskURLCache.Error(error.code))
            default: return self
            }
        case .evicted: return self
        }
    }
}
