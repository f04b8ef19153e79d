import Foundation

/// The origin's resources: the path says the lifetime, and a client can check the body.
enum Resource {
    /// The first part of a path.
    enum Shelf: String {
        /// Has a lifetime of ten minutes.
        case catalog
        /// The same, and the origin takes a while for it: long enough for eight processes to send their requests.
        case rush
        /// Has a lifetime of a few seconds, and changes.
        case price
        /// The same. The tier does not remove it after an unsafe request.
        case untold
        /// The tier keeps it; a process sends a request each time and uses its copy if the request fails.
        case stock
    }

    static let delay = 0.02
    static let rushDelay = 0.4
    static let priceLifetime = 6
    /// A field with the time at which the origin made a response, in seconds since 1970.
    static let madeField = "Made-At"

    static func shelf(_ path: String) -> Shelf? {
        path.split(separator: "/").first.flatMap { Shelf(rawValue: String($0)) }
    }

    static func cacheControl(_ path: String) -> String {
        switch shelf(path) {
        case .catalog, .rush, nil: "max-age=600"
        case .price, .untold: "max-age=\(priceLifetime)"
        case .stock: "max-age=0"
        }
    }

    /// 2 to 40 KB. The first line names path and version; the rest follows from them.
    static func body(_ path: String, version: Int) -> Data {
        let hash = path.utf8.reduce(UInt64(version)) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
        let size = 2_000 + Int((hash >> 20) % 38_000)
        return Data("\(path) version \(version)\n".utf8) + Data(repeating: UInt8(truncatingIfNeeded: hash), count: size)
    }

    /// The version of a body; nil if its bytes are not the origin's for this path.
    static func version(of body: Data, at path: String) -> Int? {
        let line = body.prefix { $0 != UInt8(ascii: "\n") }
        guard let version = String(decoding: line, as: UTF8.self).split(separator: " ").last.flatMap({ Int($0) })
        else { return nil }
        return body == Self.body(path, version: version) ? version : nil
    }
}

/// The same numbers on each machine and in each run.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// SplitMix64.
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}

/// The requests of the processes: of a few hundred resources some are loaded often and most seldom (Zipf's law).
enum Workload {
    static let resources = 300
    static let requestsEach = 150

    /// The paths that one process loads, below a folder.
    static func paths(process: Int, in folder: String) -> [String] {
        var generator = SeededGenerator(seed: UInt64(process) + 1)
        let weights = (1...resources).map { 1 / Double($0) }
        let total = weights.reduce(0, +)
        return (0..<requestsEach).map { _ in
            var rest = Double.random(in: 0..<total, using: &generator)
            let rank = weights.firstIndex { weight in
                rest -= weight
                return rest < 0
            }
            return "/catalog/\(folder)/\(rank ?? 0)"
        }
    }
}
