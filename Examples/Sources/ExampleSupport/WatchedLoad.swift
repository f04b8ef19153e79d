import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A load by plain `URLSession`, with what the cache's events say about it.
public struct WatchedLoad: Sendable {
    public let data: Data
    /// Nil when the load failed.
    public let response: HTTPURLResponse?
    public let report: DiskURLCache.Report?
    public let seconds: TimeInterval
    /// Why it failed.
    public let error: (any Error)?

    public init(
        data: Data, response: HTTPURLResponse?, report: DiskURLCache.Report? = nil, seconds: TimeInterval,
        error: (any Error)?
    ) {
        self.data = data
        self.response = response
        self.report = report
        self.seconds = seconds
        self.error = error
    }

    /// `memory`, `disk`, `network` …, or why it failed.
    public var source: String { report?.outcome.text ?? "not seen by the cache" }

    public var isFromCache: Bool {
        switch report?.outcome {
        case .hit?, .staleHit?, .revalidated?: true
        default: false
        }
    }
}

extension DiskURLCache.Report.Outcome {
    public var text: String {
        switch self {
        case .hit(let layer): "\(layer)"
        case .staleHit(let layer, _): "\(layer), stale"
        case .revalidated(let layer): "\(layer) after 304"
        case .expired, .miss, .bypass: "network"
        case .failed: "failed"
        case .notAllowed(let reason): "failed: \(reason)"
        @unknown default: "\(self)"
        }
    }
}

/// Loads an HTTP URL with plain `URLSession`, and waits for the cache's event about it. For one load at a time.
public func load(
    _ request: URLRequest, with session: URLSession = .shared, watching cache: DiskURLCache
) async -> WatchedLoad {
    var events = cache.events().makeAsyncIterator()
    let start = Date()
    let result: Result<(Data, URLResponse), any Error>
    do { result = .success(try await session.data(for: request)) } catch { result = .failure(error) }
    let seconds = Date().timeIntervalSince(start)
    var report: DiskURLCache.Report?
    while report == nil, let event = await events.next() {
        if case .load(let load) = event { report = load }
    }
    switch result {
    case .success(let (data, response)):
        return WatchedLoad(
            data: data, response: response as? HTTPURLResponse, report: report, seconds: seconds, error: nil)
    case .failure(let error):
        return WatchedLoad(data: Data(), response: nil, report: report, seconds: seconds, error: error)
    }
}

public func load(_ url: URL, watching cache: DiskURLCache) async -> WatchedLoad {
    await load(URLRequest(url: url), watching: cache)
}

/// The text of an error. Foundation's text for most codes says only that the load failed, so the code is added.
public func words(for error: any Error) -> String {
    let error = error as NSError
    let text = error.localizedDescription
    return error.domain == NSURLErrorDomain ? "\(text) (URL error \(error.code))" : text
}

/// A folder for this run of a program.
public func temporaryDirectory(_ program: String) -> URL {
    FileManager.default.temporaryDirectory
        .appendingPathComponent("\(program)-\(ProcessInfo.processInfo.processIdentifier)", isDirectory: true)
}
