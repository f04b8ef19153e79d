import Foundation

/// An event as it is written to the event log: one flat JSON object. The names and spellings stay as they are, since tools and
/// earlier files have them.
struct EventLine: Codable {
    /// `load`, `stored`, `notStored`, `userInfo`, `evicted`, `damaged`, `rebuilt` or `problem`.
    var event: String
    /// Seconds since 1970.
    var at: TimeInterval
    var url: URL?
    var method: String?
    /// Of a load: `hit`, `stale`, `revalidated`, `miss`, `bypass`, `failed`.
    var outcome: String?
    /// Of a load answered from the store.
    var layer: String?
    /// The code of the reason of a load, or of a new index. Of a problem: its description, for those who read the file.
    var reason: String?
    var status: Int?
    var bytes: Int?
    var milliseconds: Double?
    var age: Int?
    var isCollapsed: Bool?
    var cacheStatus: String?
    /// Of a load that failed with a `URLError`: its code.
    var urlError: Int?
    /// Why something was not stored: see `CacheNotStoredReason.code`.
    var notStored: String?
    /// Bytes that the body may have, where `notStored` is `too-large`.
    var limit: Int?
    var isStored: Bool?
    var inMemoryOnly: Bool?
    var entries: Int?
    var keys: [String]?
    /// The code of a problem.
    var code: String?
    var path: String?
    var errno: Int32?

    init(_ event: CacheEvent, at time: TimeInterval) {
        (self.event, at) = ("", time)
        switch event {
        case .load(let load): take(load)
        case .stored(let url, let bytes, let isInMemoryOnly):
            self.event = "stored"
            (self.url, self.bytes, inMemoryOnly) = (url, bytes, isInMemoryOnly)
        case .notStored(let url, let why):
            self.event = "notStored"
            self.url = url
            take(why)
        case .userInfoKeptInMemory(let url, let keys):
            self.event = "userInfo"
            (self.url, self.keys) = (url, keys)
        case .evicted(let entries, let bytes):
            self.event = "evicted"
            (self.entries, self.bytes) = (entries, bytes)
        case .removedDamagedRecord: self.event = "damaged"
        case .rebuiltIndex(let wasDamaged):
            self.event = "rebuilt"
            reason = wasDamaged ? "rejected" : "missing"
        case .problem(let error):
            self.event = "problem"
            (code, path, errno) = (error.code.code, error.path, error.errno)
            reason = error.description
        }
    }

    private mutating func take(_ load: CacheLoadReport) {
        event = "load"
        (url, method, status, bytes, age) = (load.url, load.method, load.status, load.bytes, load.age)
        milliseconds = (load.duration * 1_000_000).rounded() / 1_000
        (isStored, cacheStatus) = (load.isStored, load.cacheStatus)
        if load.isCollapsed { isCollapsed = true }
        if let why = load.notStoredReason {
            let length = bytes
            take(why)
            // The length of the body is that of the load.
            bytes = length
        }
        switch load.outcome {
        case .hit(let layer): (outcome, self.layer) = ("hit", layer.code)
        case .staleHit(let layer, let why): (outcome, self.layer, reason) = ("stale", layer.code, why.code)
        case .revalidated(let layer): (outcome, self.layer) = ("revalidated", layer.code)
        case .miss(let why): (outcome, reason) = ("miss", why.code)
        case .bypass(let why): (outcome, reason) = ("bypass", why.code)
        case .failed: outcome = "failed"
        case .notAllowed(let why): (outcome, reason) = ("failed", why.code)
        }
        urlError = (load.error as? URLError)?.code.rawValue
    }

    private mutating func take(_ reason: CacheNotStoredReason) {
        notStored = reason.code
        switch reason {
        case .tooLarge(let bytes, let limit): (self.bytes, self.limit) = (bytes, limit)
        case .diskFailed(let errno): self.errno = errno
        default: break
        }
    }

    /// Whether the numbers may be those of an event. Sums of a damaged file's would overflow, and its dates are none.
    private var isPlausible: Bool {
        // 3,000 years, and a petabyte: a sum over the lines of any file stays below 2^63.
        let (seconds, most) = (1e11, Int(clamping: Int64(1) << 50))
        return abs(at) < seconds && abs(milliseconds ?? 0) < seconds * 1_000
            && [bytes, entries].allSatisfy { (0...most).contains($0 ?? 0) }
    }

    /// Nil for a line that no event of this version makes.
    var cacheEvent: CacheEvent? {
        guard isPlausible else { return nil }
        return switch event {
        case "load": load.map { .load($0) }
        case "stored": .stored(url: url, bytes: bytes ?? 0, inMemoryOnly: inMemoryOnly ?? false)
        case "notStored": notStoredReason.map { .notStored(url: url, reason: $0) }
        case "userInfo": .userInfoKeptInMemory(url: url, keys: keys ?? [])
        case "evicted": .evicted(entries: entries ?? 0, bytes: bytes ?? 0)
        case "damaged": .removedDamagedRecord
        case "rebuilt": .rebuiltIndex(wasDamaged: reason == "rejected")
        case "problem":
            code.flatMap(CacheError.Code.init(code:)).map {
                .problem(CacheError($0, path: path ?? "", errno: errno ?? 0))
            }
        default: nil
        }
    }

    private var notStoredReason: CacheNotStoredReason? {
        switch notStored.flatMap(CacheNotStoredReason.init(code:)) {
        case .tooLarge: .tooLarge(bytes: bytes ?? 0, limit: limit ?? 0)
        case .diskFailed: .diskFailed(errno: errno ?? 0)
        case let reason: reason
        }
    }

    private var load: CacheLoadReport? {
        guard let outcome = loadOutcome else { return nil }
        let duration = (milliseconds ?? 0) / 1_000
        return CacheLoadReport(
            url: url, method: method ?? "", outcome: outcome, status: status ?? 0, bytes: bytes ?? 0, age: age,
            duration: duration, startedAt: Date(timeIntervalSince1970: at - duration), requestedAt: nil,
            respondedAt: nil,
            isStored: isStored, notStoredReason: notStoredReason, isCollapsed: isCollapsed ?? false,
            error: urlError.flatMap { URLError.Code(rawValue: $0) as URLError.Code? }.map { URLError($0) },
            cacheStatus: cacheStatus ?? "")
    }

    private var loadOutcome: CacheLoadReport.Outcome? {
        let layer = layer.flatMap(CacheLayer.init(code:))
        let reason = reason ?? ""
        return switch outcome {
        case "hit": layer.map { .hit($0) }
        case "stale":
            if let layer, let why = CacheStaleReason(code: reason) { .staleHit(layer, why) } else { nil }
        case "revalidated": layer.map { .revalidated($0) }
        case "miss": CacheMissReason(code: reason).map { .miss($0) }
        case "bypass": CacheBypassReason(code: reason).map { .bypass($0) }
        case "failed": CacheMissReason(code: reason).map { .notAllowed($0) } ?? .failed
        default: nil
        }
    }
}

extension CacheLayer: Coded {
    static let all: [CacheLayer] = [.memory, .disk, .fallback]

    var code: String { "\(self)" }
}

extension CacheError.Code: Coded {
    /// Those that an event tells.
    static let all: [CacheError.Code] = [
        .notAFileURL, .obstructed, .notACache, .notReadable, .notWritable, .io, .damaged, .foreign, .inUse,
        .loaderMissing, .otherOwner, .writableByOthers, .otherSettings, .sharedStorage,
    ]

    var code: String { "\(self)" }
}
