import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One response as a process got it.
struct Answer: Codable, Sendable {
    /// The source of the response, as the process saw it.
    enum Source: String, Codable {
        /// The cache of the process, without a request.
        case own
        /// The cache of the process, after a 304.
        case checked
        /// The cache of the process, because the tier did not answer.
        case stale
        case tier
        case origin
        case failed
    }

    let path: String
    let source: Source
    let seconds: TimeInterval
    /// Nil if the body is not the origin's.
    let version: Int?
    /// The age of the response at the time of the request, in seconds. Nil if the response is newer.
    let age: TimeInterval?
}

/// The client of each process: `URLSession`, perhaps with a cache, perhaps with a tier on the way.
struct Client: Sendable {
    let session: URLSession
    let cache: DiskURLCache?
    private let tierPort: Int?
    private let originPort: Int

    init(directory: URL?, tierPort: Int?, originPort: Int) throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        if let directory {
            var settings = DiskURLCache.Configuration(
                memoryCapacity: 8 << 20, diskCapacity: 64 << 20, directory: directory)
            // The processes work for many users.
            settings.isShared = true
            // While the tier is down, a stored response is used for an hour.
            settings.staleIfError = .hours(1)
            // An error with a lifetime may be stored, and would be served. This client sends a request to the origin
            // instead.
            settings.willCacheResponse = { stored, _ in
                (stored.response as? HTTPURLResponse)?.statusCode == 200 ? stored : nil
            }
            let cache = DiskURLCache(configuration: settings)
            cache.attach(to: configuration)
            self.cache = cache
        } else {
            cache = nil
        }
        session = URLSession(configuration: configuration)
        self.tierPort = tierPort
        self.originPort = originPort
    }

    private func request(_ path: String, at port: Int? = nil, method: String = "GET") throws -> URLRequest {
        guard let url = URL(string: "http://127.0.0.1:\(port ?? tierPort ?? originPort)\(path)") else {
            throw URLError(.badURL)
        }
        var request = URLRequest(url: url)
        request.httpMethod = method
        return request
    }

    /// The tier first. If it fails, and the cache has no response that may be used instead, the origin.
    func answer(_ path: String, timeout: TimeInterval) async -> Answer {
        let start = Date()
        var seconds: TimeInterval = 0
        func answer(_ load: WatchedLoad, source: Answer.Source) -> Answer {
            let made = load.response?.value(forHTTPHeaderField: Resource.madeField).flatMap { TimeInterval($0) }
            let age = made.map { start.timeIntervalSince1970 - $0 }
            return Answer(
                path: path, source: source, seconds: seconds, version: Resource.version(of: load.data, at: path),
                age: age.flatMap { $0 < 0 ? nil : $0 })
        }
        for (port, source) in [(tierPort, Answer.Source.tier), (originPort, .origin)] {
            guard let port, var request = try? request(path, at: port) else { continue }
            request.timeoutInterval = timeout
            let load = await self.load(request)
            seconds += load.seconds
            if load.response?.statusCode == 200 {
                switch load.report?.outcome {
                case .hit: return answer(load, source: .own)
                case .revalidated: return answer(load, source: .checked)
                case .staleHit: return answer(load, source: .stale)
                default: return answer(load, source: source)
                }
            }
        }
        return Answer(path: path, source: .failed, seconds: seconds, version: nil, age: nil)
    }

    private func load(_ request: URLRequest) async -> WatchedLoad {
        if let cache { return await ExampleSupport.load(request, with: session, watching: cache) }
        let start = Date()
        let result: Result<(Data, URLResponse), any Error>
        do { result = .success(try await session.data(for: request)) } catch { result = .failure(error) }
        let seconds = Date().timeIntervalSince(start)
        switch result {
        case .success(let (data, response)):
            return WatchedLoad(data: data, response: response as? HTTPURLResponse, seconds: seconds, error: nil)
        case .failure(let error):
            return WatchedLoad(data: Data(), response: nil, seconds: seconds, error: error)
        }
    }

    /// Several callers load one resource at once. Returns the version that each caller got.
    func rush(_ path: String, callers: Int) async -> [Int?] {
        guard let request = try? request(path) else { return [] }
        return await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<callers {
                group.addTask {
                    (try? await session.data(for: request)).flatMap { Resource.version(of: $0.0, at: path) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// Sends a request with this method. Returns the status.
    func send(_ method: String, _ path: String) async throws -> Int? {
        (try await session.data(for: request(path, method: method)).1 as? HTTPURLResponse)?.statusCode
    }
}
