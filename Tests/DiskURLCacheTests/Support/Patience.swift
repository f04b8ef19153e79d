import Dispatch
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// How long tests wait for what is to come. A busy machine or the thread sanitizer may hold up a test for minutes between two
/// statements: only a broken promise takes ten.
enum Patience {
    static let seconds = 600
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
