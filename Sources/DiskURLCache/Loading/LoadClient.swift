import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a load has to say to whoever asked: one head, any data, one end.
enum LoadCall {
    case receive(DeliveredHead)
    case load(Data)
    /// A body that is left in its file: the client takes its pieces at its own pace, and what comes after it waits. Only for one that
    /// takes pieces.
    case read(OpenBody)
    // Indirect: a summary is large, and seldom there.
    indirect case finish(LoadSummary?)
    indirect case fail(Swift.Error, LoadSummary?)

    var isHead: Bool { if case .receive = self { true } else { false } }
    var isRead: Bool { if case .read = self { true } else { false } }

    /// Where the rest of a body cannot be read.
    static var unreadable: LoadCall { .fail(URLError(.resourceUnavailable), nil) }
}

/// Whoever asked for a load.
protocol LoadClient: AnyObject, Sendable {
    /// Whether the end is to come with a summary of the load.
    var wantsSummary: Bool { get }
    /// Whether the pieces of a body may be handed over as they arrive. Else it comes whole, in one call.
    var takesPieces: Bool { get }
    /// Whether somebody is to be asked before a response is stored, or before a redirect is followed.
    var confirmsStorage: Bool { get }
    var confirmsRedirects: Bool { get }

    /// From 0 to 1, as `URLSessionTask.priority`.
    var priority: Float { get }

    /// Bytes handed over that whoever asked has not taken yet, as far as that is known. Above `LoadDriver.undeliveredLimit`
    /// the transfer is held up until `LoadDriver.clientCaughtUp` is called.
    var undeliveredBytes: Int { get }

    /// From any thread.
    func send(_ calls: [LoadCall])
    /// From the thread that started the load, inside `start`.
    func perform(_ calls: [LoadCall])
    /// Nothing is to be said any more.
    func close()

    /// - Parameter completion: takes what to store, perhaps changed, or nil for nothing.
    func confirmStorage(
        of response: CachedURLResponse, completion: @escaping @Sendable (CachedURLResponse?) -> Void)
    /// - Parameter completion: takes the request to follow, perhaps changed, or nil to get the redirect itself.
    func confirmRedirect(
        _ response: HTTPURLResponse, to next: URLRequest, completion: @escaping @Sendable (URLRequest?) -> Void)
}

extension LoadClient {
    var takesPieces: Bool { false }
    var confirmsStorage: Bool { false }
    var confirmsRedirects: Bool { false }
    var priority: Float { URLSessionTask.defaultPriority }
    var undeliveredBytes: Int { 0 }

    func confirmStorage(
        of response: CachedURLResponse, completion: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        completion(response)
    }

    func confirmRedirect(
        _ response: HTTPURLResponse, to next: URLRequest, completion: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completion(next)
    }
}
