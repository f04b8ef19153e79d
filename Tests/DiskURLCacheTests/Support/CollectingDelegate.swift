import Foundation

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A session delegate that collects what each data task gets, as an app's own might: loads take another way through
/// URLSession with it than with completion handlers.
final class CollectingDelegate: NSObject, URLSessionDataDelegate, Sendable {
    private struct Load {
        var response: URLResponse?
        var data = Data()
        var continuation: CheckedContinuation<(Data, URLResponse), any Error>
    }

    private let loads = Mutex<[Int: Load]>([:])

    /// `session` must have this delegate, and only loads by this method.
    func data(for request: URLRequest, in session: URLSession) async throws -> (Data, URLResponse) {
        try await withCheckedThrowingContinuation { continuation in
            let task = session.dataTask(with: request)
            loads.withLock { $0[task.taskIdentifier] = Load(continuation: continuation) }
            task.resume()
        }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        loads.withLock { $0[dataTask.taskIdentifier]?.response = response }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        loads.withLock { $0[dataTask.taskIdentifier]?.data.append(data) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let load = loads.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        if let error {
            load.continuation.resume(throwing: error)
        } else if let response = load.response ?? task.response {
            load.continuation.resume(returning: (load.data, response))
        } else {
            load.continuation.resume(throwing: URLError(.badServerResponse))
        }
    }
}
