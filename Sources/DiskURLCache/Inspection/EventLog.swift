import Foundation

extension DiskURLCache {
    /// Writes a cache's events to a file, one JSON object on each line, for `urlcache watch` and `urlcache report`. Ends when it
    /// is released.
    ///
    /// The file holds plain URLs (without user names and passwords) and has mode 0600. Before it would grow beyond the limit, it is
    /// renamed to `….1`, in place of an older one, and a new file is begun.
    public final class EventLog: Sendable {
        /// One line of the file.
        public struct Entry: Codable, Sendable, Hashable {
            /// `load`, `stored`, `notStored`, `evicted`, `damaged`, `rebuilt` or `problem`.
            public var event: String
            /// Seconds since 1970.
            public var at: TimeInterval
            public var url: String?
            public var method: String?
            /// Of a load: `hit`, `stale`, `revalidated`, `miss`, `bypass`, `failed`.
            public var outcome: String?
            /// Of a load answered from the store: `memory`, `disk`, `fallback`.
            public var layer: String?
            /// Why: for a miss, a bypass, a failure, or an answer that was not stored.
            public var reason: String?
            public var status: Int?
            public var bytes: Int?
            public var milliseconds: Double?
            /// Of a load whose answer came from the network and was not stored: why.
            public var notStored: String?
        }

        /// The name of the log in a cache's own directory, where the inspector looks for it.
        public static let fileName = "events.jsonl"

        private struct State {
            var descriptor: Int32 = -1
            var length = 0
        }

        private let cache: DiskURLCache
        private let path: String
        private let limit: Int
        private let files: any FileSystem = SystemFiles()
        /// Writing happens here, not where the event comes from.
        private let queue = DispatchQueue(label: "DiskURLCache.eventLog", qos: .utility)
        private let state = Mutex(State())
        private let listener: Mutex<UInt64?> = Mutex(nil)

        /// - Parameters:
        ///   - cache: the cache whose events are kept.
        ///   - file: nil means ``fileName`` in the cache's directory; it is not counted in the cache's capacity.
        ///   - limit: bytes of the file before it is begun anew.
        public init(_ cache: DiskURLCache, file: URL? = nil, limit: Int = 4 << 20) {
            self.cache = cache
            let directory = cache.configuration.directory ?? DiskURLCache.defaultDirectory
            path = (file ?? directory.appendingPathComponent(Self.fileName)).path
            self.limit = max(4_096, limit)
            let id = cache.hub.addListener { [weak self] event in self?.take(event) }
            listener.withLock { $0 = id }
        }

        deinit {
            if let id = listener.withLock({ $0 }) { cache.hub.removeListener(id) }
            let descriptor = state.withLock { $0.descriptor }
            if descriptor >= 0 { files.closeQuietly(descriptor) }
        }

        /// Returns when all events so far are in the file.
        public func flush() {
            queue.sync {}
        }

        private func take(_ event: CacheEvent) {
            let now = Date().timeIntervalSince1970
            queue.async { self.write(Entry(event, at: now)) }
        }

        private func write(_ entry: Entry) {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            guard var line = try? encoder.encode(entry) else { return }
            line.append(UInt8(ascii: "\n"))
            state.withLock { state in
                if state.descriptor >= 0, state.length + line.count > limit {
                    files.closeQuietly(state.descriptor)
                    state.descriptor = -1
                    try? files.rename(path, to: path + ".1")
                }
                if state.descriptor < 0 {
                    // Not there yet, or not to be opened: the event is lost, the next one tries again.
                    guard let file = try? files.openFile(path, O_WRONLY | O_APPEND | O_CREAT) else { return }
                    guard let status = try? files.status(file), status.kind == .regular else {
                        return files.closeQuietly(file)
                    }
                    state.descriptor = file
                    state.length = status.size
                }
                let descriptor = state.descriptor
                let isWritten = line.withUnsafeBytes { (try? files.writeFully(descriptor, $0)) != nil }
                if isWritten { state.length += line.count }
            }
        }

        /// The entries of a log, the older file first; lines that are none are passed over.
        public static func entries(in file: URL) -> [Entry] {
            let decoder = JSONDecoder()
            return [file.path + ".1", file.path].flatMap { path -> [Entry] in
                guard let data = FileManager.default.contents(atPath: path) else { return [] }
                return data.split(separator: UInt8(ascii: "\n")).compactMap {
                    try? decoder.decode(Entry.self, from: $0)
                }
            }
        }
    }
}

extension DiskURLCache.EventLog.Entry {
    init(_ event: CacheEvent, at time: TimeInterval) {
        self.init(event: "", at: time)
        switch event {
        case .load(let load): take(load)
        case .stored(let url, let bytes, let inMemoryOnly):
            self.event = "stored"
            (self.url, self.bytes) = (url, bytes)
            reason = inMemoryOnly ? "in memory only" : nil
        case .notStored(let url, let why):
            self.event = "notStored"
            self.url = url
            reason = why.text
        case .userInfoKeptInMemory(let url, let keys):
            self.event = "problem"
            self.url = url
            reason = "userInfo kept in memory only: \(keys.joined(separator: ", "))"
        case .evicted(let entries, let bytes):
            self.event = "evicted"
            self.bytes = bytes
            reason = "\(entries) entries"
        case .removedDamagedRecord: self.event = "damaged"
        case .rebuiltIndex(let why):
            self.event = "rebuilt"
            reason = why
        case .problem(let error):
            self.event = "problem"
            reason = error.description
        }
    }

    private mutating func take(_ load: CacheLoadReport) {
        event = "load"
        (url, method, status, bytes) = (load.url, load.method, load.status, load.bytes)
        notStored = load.notStoredReason?.text
        milliseconds = (load.duration * 1_000_000).rounded() / 1_000
        switch load.outcome {
        case .hit(let layer): (outcome, self.layer) = ("hit", layer.rawValue)
        case .staleHit(let layer, let why): (outcome, self.layer, reason) = ("stale", layer.rawValue, why)
        case .revalidated(let layer): (outcome, self.layer) = ("revalidated", layer.rawValue)
        case .miss(let why): (outcome, reason) = ("miss", why)
        case .bypass(let why): (outcome, reason) = ("bypass", why)
        case .failed(let why): (outcome, reason) = ("failed", why)
        }
    }
}

extension CacheNotStoredReason {
    var text: String {
        switch self {
        case .noKey: "the request has no key"
        case .refused: "refused by the app"
        case .removedMeanwhile: "removed or replaced while it was loaded"
        case .tooLarge(let bytes, let limit): "\(bytes) bytes, the limit is \(limit)"
        case .http(let rule), .disk(let rule): rule
        }
    }
}
