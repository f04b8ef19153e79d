import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// How long tests wait for something: for seconds, so that a broken promise fails, and says which.
///
/// Only the time in which the waiting task or thread runs counts. A busy machine or the thread sanitizer may hold up a
/// test for minutes between two statements, and the other side of the wait as well.
public struct Patience {
    /// `DISKURLCACHE_PATIENCE` sets another number.
    public static let seconds = ProcessInfo.processInfo.environment["DISKURLCACHE_PATIENCE"].flatMap(Int.init) ?? 20

    /// The timeout of requests that are not to time out; for `.ci/mac`, which sets the variable, of those that hang.
    public static let ofLoads: TimeInterval =
        ProcessInfo.processInfo.environment["DISKURLCACHE_PATIENCE"] == nil ? 600 : TimeInterval(seconds)

    private var left: Duration
    private var last = ContinuousClock.now

    /// - Parameter factor: for what takes longer than a wait, such as the work of a whole test.
    public init(times factor: Int = 1) { left = .seconds(factor * Self.seconds) }

    /// To be asked again and again, every tenth of a second or sooner.
    public mutating func isOver() -> Bool {
        let now = ContinuousClock.now
        left -= min(now - last, .milliseconds(200))
        last = now
        return left <= .zero
    }

    public static func issue(_ what: String, _ sourceLocation: SourceLocation) {
        Issue.record("waited \(seconds) s for \(what)", sourceLocation: sourceLocation)
    }
}

/// Waits for what nothing announces, without holding a thread; an issue if it does not come.
/// - Parameter what: what is waited for, as the issue names it.
public func eventually(
    _ what: String, sourceLocation: SourceLocation = #_sourceLocation, _ isSo: () async throws -> Bool
) async rethrows {
    var patience = Patience()
    while try await !isSo() {
        if patience.isOver() { return Patience.issue(what, sourceLocation) }
        // Ends early only if the task is cancelled.
        guard (try? await Task.sleep(for: .milliseconds(1))) != nil else { return }
    }
}

extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The first value that `choose` makes of an element; nil, and an issue, if none comes.
    public func first<Value: Sendable>(
        _ what: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ choose: @escaping @Sendable (Element) -> Value?
    ) async -> Value? {
        let reading = Task { () -> Value? in
            for try await element in self { if let value = choose(element) { return value } }
            return nil
        }
        let waiting = Task {
            var patience = Patience()
            while !patience.isOver() { guard (try? await Task.sleep(for: .milliseconds(50))) != nil else { return } }
            reading.cancel()
        }
        defer { waiting.cancel() }
        let value = try? await reading.value
        if value == nil { Patience.issue(what, sourceLocation) }
        return value ?? nil
    }
}

extension AsyncSequence where Self: Sendable, Element: Sendable {
    /// The elements up to the first one for which `isLast` is true; an issue if that one does not come.
    public func elements(
        upTo what: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ isLast: @escaping @Sendable (Element) -> Bool
    ) async -> [Element] {
        let elements = Guarded<[Element]>([])
        _ = await first(what, sourceLocation: sourceLocation) { element in
            elements.withLock { $0.append(element) }
            return isLast(element) ? true : nil
        }
        return elements.withLock { $0 }
    }
}

extension DispatchSemaphore {
    /// Waits for a signal; false, and an issue, if none comes.
    @discardableResult
    public func isSignalled(_ what: String, sourceLocation: SourceLocation = #_sourceLocation) -> Bool {
        var patience = Patience()
        while wait(timeout: .now() + .milliseconds(100)) == .timedOut {
            guard patience.isOver() else { continue }
            Patience.issue(what, sourceLocation)
            return false
        }
        return true
    }
}

extension DispatchGroup {
    /// Waits until all have left; an issue if they do not.
    public func wait(for what: String, sourceLocation: SourceLocation = #_sourceLocation) {
        var patience = Patience()
        while wait(timeout: .now() + .milliseconds(100)) == .timedOut {
            if patience.isOver() { return Patience.issue(what, sourceLocation) }
        }
    }
}

#if os(Linux) || os(macOS)
    extension Process {
        /// Waits for the end of a process, which is killed if it does not come.
        public func waitUntilExit(of what: String, sourceLocation: SourceLocation = #_sourceLocation) {
            var patience = Patience()
            while isRunning {
                if patience.isOver() {
                    Patience.issue("the end of \(what)", sourceLocation)
                    kill(processIdentifier, SIGKILL)
                    break
                }
                usleep(1_000)
            }
            waitUntilExit()
        }
    }
#endif

extension URLSessionConfiguration {
    /// The same configuration, whose loads do not time out while the test is held up.
    public var patient: URLSessionConfiguration {
        timeoutIntervalForRequest = Patience.ofLoads
        return self
    }
}

extension Data {
    /// The bytes of a file that a download made. The file is removed, since Foundation on Linux leaves it in the
    /// temporary folder.
    public init?(taking file: URL) {
        guard let bytes = try? Data(contentsOf: file) else { return nil }
        try? FileManager.default.removeItem(at: file)
        self = bytes
    }
}
