import Foundation

/// A call of a load to its client: one head, any data, one end.
enum LoadCall {
    case receive(DeliveredHead)
    case load(Data)
    /// The body of the answer, which arrives meanwhile: the client takes its parts at its own pace, and later calls
    /// wait. Only for a client that takes pieces.
    case stream(ArrivingBody)
    /// A body that stays in its file: the client takes its pieces at its own pace, and later calls wait. Only for a
    /// client that takes pieces.
    case read(OpenBody)
    /// Asks a client that confirms each response before it is stored.
    /// - Parameter completion: takes the response to store, perhaps changed, or nil to store none.
    indirect case confirmStorage(of: CachedURLResponse, completion: @Sendable (CachedURLResponse?) -> Void)
    case finish(LoadReport)
    /// The report is nil for a body whose rest cannot be read.
    case fail(Swift.Error, LoadReport?)

    var isHead: Bool { if case .receive = self { true } else { false } }
}

/// The recipient of a load's calls.
protocol LoadClient: AnyObject, Sendable {
    /// Whether the pieces of a body may be sent as they arrive. If not, the body comes whole, in one call.
    var acceptsPieces: Bool { get }
    /// Whether the client confirms each response before it is stored.
    var confirmsStorage: Bool { get }

    /// Whether it may want a redirect as the answer. If not, it follows every one, and `confirmRedirect` completes with
    /// a request.
    var decidesRedirects: Bool { get }

    /// From 0 to 1, as `URLSessionTask.priority`.
    var priority: Float { get }

    /// It takes nothing for now.
    var isPaused: Bool { get }

    /// From any thread.
    func send(_ calls: [LoadCall])
    /// From the thread that started the load, inside `start`.
    func perform(_ calls: [LoadCall])
    /// A body that had nothing for the client has something now. From any thread.
    func bodyArrived()
    /// No call follows.
    func close()

    /// - Parameter completion: takes the request to follow, perhaps changed, or nil to get the redirect itself.
    func confirmRedirect(
        _ head: ResponseHead, of request: DiskURLCache.Request, to next: DiskURLCache.Request,
        completion: @escaping @Sendable (DiskURLCache.Request?) -> Void)
}

extension LoadClient {
    var acceptsPieces: Bool { false }
    var confirmsStorage: Bool { false }
    var decidesRedirects: Bool { false }
    var priority: Float { URLSessionTask.defaultPriority }
    var isPaused: Bool { false }

    func bodyArrived() {}

    func confirmRedirect(
        _ head: ResponseHead, of request: DiskURLCache.Request, to next: DiskURLCache.Request,
        completion: @escaping @Sendable (DiskURLCache.Request?) -> Void
    ) {
        completion(next)
    }
}
