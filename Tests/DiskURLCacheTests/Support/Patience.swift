import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// How long tests wait for what is to come. A busy machine or the thread sanitizer may hold up a test for minutes
/// between two statements: only a broken promise takes ten.
enum Patience {
    static let seconds = 600
}

/// Waits for what nothing announces, without holding a thread; an issue where that does not come.
func eventually(_ isSo: () async throws -> Bool, sourceLocation: SourceLocation = #_sourceLocation) async rethrows {
    let end = ContinuousClock.now + .seconds(Patience.seconds)
    while try await !isSo() {
        guard .now < end else {
            Issue.record("not within \(Patience.seconds) s", sourceLocation: sourceLocation)
            return
        }
        // Ends early only where the task is cancelled.
        guard (try? await Task.sleep(for: .milliseconds(1))) != nil else { return }
    }
}

extension DispatchSemaphore {
    /// Waits for a signal; false when none came.
    func isSignalled() -> Bool {
        wait(timeout: .now() + .seconds(Patience.seconds)) == .success
    }
}

extension URLSessionConfiguration {
    /// The same configuration, whose loads do not time out while the test is held up.
    var patient: URLSessionConfiguration {
        timeoutIntervalForRequest = TimeInterval(Patience.seconds)
        return self
    }
}

extension Data {
    /// The bytes of a file that a download made, which goes: Foundation on Linux leaves it in the temporary folder.
    init?(taking file: URL) {
        guard let bytes = try? Data(contentsOf: file) else { return nil }
        try? FileManager.default.removeItem(at: file)
        self = bytes
    }
}
