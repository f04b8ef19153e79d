import Foundation

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Two caches on one directory, as two processes have them, which do what an input says: three bytes are an operation.
/// A lookup must find what was stored last, or nothing; and it must find it if no file was damaged since.
final class Operations {
    private static let places = 4
    private static let clock = Date(timeIntervalSince1970: 1_700_000_000)

    private let input: [UInt8]
    private let directory: URL
    private var caches: [DiskURLCache] = []
    /// The number of the body that each place has; nil for nothing.
    private var stored = [Int?](repeating: nil, count: places)
    private var tags = [Set<String>](repeating: [], count: places)
    /// A file was damaged, so a response may be lost.
    private var isDamaged = false
    private var count = 0
    private var log: [String] = []

    private static let count = Mutex(0)

    init(_ input: [UInt8]) {
        self.input = input
        let number = Self.count.withLock { number in
            number += 1
            return number
        }
        directory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "fuzz-\(ProcessInfo.processInfo.processIdentifier)-\(number)")
    }

    func run() {
        caches = [open(), open()]
        for start in stride(from: 0, to: min(input.count, 3 * 60) - 2, by: 3) {
            perform(input[start], on: Int(input[start + 1] >> 7), Int(input[start + 1] & 0x7F), Int(input[start + 2]))
        }
        for index in 0..<2 { for place in 0..<Self.places { check(place, by: index) } }
        caches = []
        try? FileManager.default.removeItem(at: directory)
    }

    private func open() -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 1 << 20, diskCapacity: 64 << 20, directory: directory)
        // A store of its own, not that of the other cache: as another process has it.
        configuration.store = configuration.makeStore(directory: directory, maintenance: MaintenanceQueue())
        let cache = DiskURLCache(configuration: configuration)
        // Who comes while others come and remove is the question of `OpeningRaceTests`.
        cache.flush()
        return cache
    }

    private func perform(_ operation: UInt8, on index: Int, _ first: Int, _ second: Int) {
        let cache = caches[index]
        let place = first % Self.places
        switch operation % 11 {
        case 0, 1, 2: store(place, by: index, second)
        case 3: check(place, by: index)
        case 4:
            note("remove \(place)", index)
            cache.removeCachedResponse(for: request(place))
            // All variants.
            forget { min($0, 2) == min(place, 2) }
        case 5:
            let tag = second % 2 == 0 ? "x" : "y"
            note("remove tag \(tag)", index)
            cache.removeCachedResponses(tag: tag)
            forget { tags[$0].contains(tag) }
        case 6:
            note("remove all", index)
            cache.removeAllCachedResponses()
            forget { _ in true }
        case 7:
            note("flush", index)
            cache.flush()
        case 8:
            note("open again", index)
            caches[index] = open()
        case 9:
            note("empty memory", index)
            cache.removeAllCachedResponses(from: .memory)
        default: damage(first, second)
        }
    }

    private func note(_ text: String, _ index: Int) { log.append("\(index): \(text)") }

    private func forget(_ isForgotten: (Int) -> Bool) {
        for place in 0..<Self.places where isForgotten(place) {
            stored[place] = nil
            tags[place] = []
        }
    }

    /// Two places of a URL without `Vary`, and two of one with it.
    private func request(_ place: Int) -> URLRequest {
        var request = URLRequest(url: URL(string: "https://example.com/\(min(place, 2))")!)
        request.setValue(place == 3 ? "de" : "en", forHTTPHeaderField: "Accept-Language")
        return request
    }

    private func store(_ place: Int, by index: Int, _ second: Int) {
        count += 1
        let length = [10, 3_000, 20_000, 200_000][second % 4]
        let tag = [nil, nil, "x", "y"][second / 4 % 4]
        note("store \(count) at \(place), \(length) bytes, tag \(tag ?? "none")", index)
        var request = request(place)
        if let tag { request.cacheOptions = .init(tags: [tag]) }
        var fields = ["Cache-Control": "max-age=100000"]
        if place >= 2 { fields["Vary"] = "Accept-Language" }
        let response = HTTPURLResponse(
            url: request.url!, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields)!
        let body = Data("\(count) ".utf8) + Data(repeating: UInt8(truncatingIfNeeded: count), count: length)
        caches[index].storeCachedResponse(CachedURLResponse(response: response, data: body), for: request)
        // A response keeps the tags of the one that it replaces.
        if let tag { tags[place].insert(tag) }
        stored[place] = count
    }

    private func check(_ place: Int, by index: Int) {
        let cache = caches[index]
        // As a lookup does that comes a second later.
        cache.core.store.disk?.checkNow()
        let found = cache.cachedResponse(for: request(place))?.data
        let number = found.flatMap { Int(String(decoding: $0.prefix { $0 != 0x20 }, as: UTF8.self)) }
        note("look up \(place): \(number.map(String.init) ?? "nothing")", index)
        if let found, let number {
            let body = found.drop { $0 != 0x20 }.dropFirst()
            if !body.allSatisfy({ $0 == UInt8(truncatingIfNeeded: number) }) { fail("altered bytes") }
        }
        if number == stored[place] { return }
        if isDamaged, number == nil { return }
        fail("expected \(stored[place].map(String.init) ?? "nothing")")
    }

    /// Changes a byte of a file, or cuts it.
    private func damage(_ first: Int, _ second: Int) {
        let records = directory.appendingPathComponent("records")
        let names = ((try? FileManager.default.contentsOfDirectory(atPath: records.path)) ?? []).sorted()
        let files = names.map { records.appendingPathComponent($0) } + [directory.appendingPathComponent("index.plist")]
        let file = files[first % files.count]
        guard let handle = try? FileHandle(forUpdating: file), let length = try? handle.seekToEnd(), length > 0 else {
            return
        }
        log.append("damage \(file.lastPathComponent)")
        isDamaged = true
        let place = length - 1 - UInt64(second) * length / 256
        if first >= 64 {
            try? handle.truncate(atOffset: place)
        } else {
            try? handle.seek(toOffset: place)
            guard let byte = try? handle.read(upToCount: 1)?.first else { return }
            try? handle.seek(toOffset: place)
            try? handle.write(contentsOf: Data([byte ^ UInt8(1 << (first % 8))]))
        }
        try? handle.close()
    }

    private func fail(_ problem: String) {
        fatalError("\(problem)\n\(log.joined(separator: "\n"))")
    }
}
