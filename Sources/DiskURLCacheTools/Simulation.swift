import DiskURLCache
import Foundation

extension DiskURLCache {
    /// How many requests of an event log a cache with another capacity would have answered. For `urlcache simulate`.
    ///
    /// The requests are those of the log, in its order. What is kept is decided by the code of the real cache; only the
    /// files are missing. Some things a log does not tell, so the result is an estimate:
    /// - A response counts as usable for as long as it is kept, unless the log says that it had expired.
    /// - Removals by the app, tags and pins are not known. Variants of a URL count as one response.
    /// - The size of header fields is a usual one. Memory is not simulated: what it holds is on disk, too.
    public struct Simulation: Sendable {
        /// What a cache would have answered.
        public struct Result: Sendable, Hashable {
            /// The requests that were answered from the cache, also after the origin confirmed the response.
            public fileprivate(set) var hits = 0
            /// The length of their bodies.
            public fileprivate(set) var bytesFromCache = 0
            /// How many responses are too large for the capacity, so that they are not stored: one may take half of it.
            public fileprivate(set) var tooLarge = 0
        }

        fileprivate struct Access {
            let name: String
            let bytes: Int
            /// Whether a cache that holds the response answers. If not, the request needed a new answer.
            let isAnswerable: Bool
            let isStorable: Bool
        }

        private let list: [Access]
        /// What each response that could be stored takes on disk.
        private let spaces: [Int]
        /// The requests that asked the cache and had an answer.
        public var requests: Int { list.count }
        /// The length of all their answers.
        public let bytes: Int
        /// How many different responses could be stored.
        public let responses: Int
        /// The capacity at which nothing would be evicted.
        public let bytesOnDisk: Int

        /// - Parameter entries: the events, as `EventLog.entries(in:)` gives them. Events without a URL are left out.
        public init(_ entries: [(date: Date, event: Event)]) {
            let list = entries.compactMap { entry in
                if case .load(let load) = entry.event { Access(load) } else { nil }
            }
            self.list = list
            bytes = list.reduce(0) { $0 + $1.bytes }
            let sizes = Dictionary(list.filter(\.isStorable).map { ($0.name, $0.bytes) }, uniquingKeysWith: max)
            responses = sizes.count
            let spaces = sizes.values.map(Self.space)
            self.spaces = spaces
            // A response may take half of the capacity at most.
            bytesOnDisk = max(2 * (spaces.max() ?? 0), spaces.reduce(0) { $0 + $1 + IndexFileLayout.rowLength })
        }

        /// - Parameters:
        ///   - capacity: bytes on disk.
        ///   - evictionWeighsSize: as in `DiskURLCache.Configuration`.
        public func run(capacity: Int, evictionWeighsSize: Bool = false) -> Result {
            var replay = EvictionReplay(capacity: max(0, capacity), weighsSize: evictionWeighsSize)
            var result = Result()
            result.tooLarge = spaces.count { $0 > replay.largestEntry }
            for request in list {
                if request.isAnswerable, replay.use(request.name) {
                    result.hits += 1
                    result.bytesFromCache += request.bytes
                } else if request.isStorable {
                    replay.store(request.name, bytesOnDisk: Self.space(request.bytes))
                }
            }
            return result
        }

        /// The space of a record on a file system with blocks of 4 KB.
        private static func space(_ bytes: Int) -> Int { (bytes + 700 + 4_095) / 4_096 * 4_096 }
    }
}

extension DiskURLCache.Simulation.Access {
    /// Nil for a load that did not ask the cache, or had no answer.
    fileprivate init?(_ load: DiskURLCache.Report) {
        guard let url = load.url else { return nil }
        let isStored = load.isStored == true || load.notStoredReason == .tooLarge
        switch load.outcome {
        case .hit, .staleHit, .revalidated:
            isAnswerable = true
            isStorable = true
        case .miss(.notInCache):
            isAnswerable = true
            isStorable = isStored
        case .miss, .expired:
            isAnswerable = false
            isStorable = isStored
        case .bypass, .failed, .notAllowed: return nil
        }
        name = "\(load.method) \(url.absoluteString)"
        // At most a terabyte, so that sums do not overflow whatever the log says.
        bytes = min(load.bytes, 1 << 40)
    }
}
