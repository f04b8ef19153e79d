import Foundation

/// The one way to a protocol's client: in order, on the queue that Foundation expects, and never after the end.
///
/// Foundation on Linux crashes at a call to the client of a stopped task, so every call first checks the
/// state, on the very queue that stops. A suspended task's calls wait until it is resumed.
///
/// `@unchecked Sendable`: the state is behind the lock or confined to `queue`; the task is passed to its delegate and
/// otherwise not used.
final class ClientPort: LoadClient, @unchecked Sendable {
    /// With completion handlers, each `didLoad` replaces the data before it.
    let acceptsPieces: Bool
    var confirmsStorage: Bool { acceptsPieces }
    var decidesRedirects: Bool { !delegates.isEmpty }

    private weak var urlProtocol: URLProtocol?
    let task: URLSessionTask
    private let session: URLSession
    private let queue: any ClientQueue
    /// Asked in this order: the first one that has the method decides.
    private let delegates: [any URLSessionTaskDelegate]
    /// Gives each piece of a body to a delegate, too, that does not get the pieces from the client. Called on the
    /// session's delegate queue.
    private let passesPiece: (@Sendable (Data) -> Void)?
    /// A piece of a body in a file is being read.
    private var isReading = false
    /// Bytes that were put into the delegate's queue, and may still wait there: that queue has no limit of its own.
    private var bytesWithDelegate = 0
    /// The part of `bytesWithDelegate` behind which no report was put into the delegate's queue yet.
    private var unreportedBytes = 0
    private let calls = Mutex(CallQueue())
    /// The client knows that the task has ended. Not so after a 401: Foundation may ask for credentials then, and a
    /// refusal ends the task through the client.
    private(set) var hasEnded = false
    private var isUnauthorized = false

    init(
        _ urlProtocol: URLProtocol, task: URLSessionTask, session: URLSession, queue: any ClientQueue,
        delegates: [any URLSessionTaskDelegate], acceptsPieces: Bool, passesPiece: (@Sendable (Data) -> Void)? = nil
    ) {
        self.urlProtocol = urlProtocol
        self.task = task
        self.session = session
        self.queue = queue
        self.delegates = delegates
        self.acceptsPieces = acceptsPieces
        self.passesPiece = passesPiece
    }

    /// Called from any thread except `queue`.
    func send(_ calls: [LoadCall]) {
        guard !calls.isEmpty else { return }
        if !hearsParts, calls.allSatisfy(\.isHead) {
            // Nobody is told of a head before the end, so that no thread is woken for it.
            self.calls.withLock { queue in
                for call in calls { queue.append(call) }
            }
            return
        }
        queue.enqueue { self.perform(calls) }
    }

    /// Whether somebody hears of the head and the pieces before the end. A completion handler does not.
    private var hearsParts: Bool { acceptsPieces || passesPiece != nil }

    /// On `queue`.
    func perform(_ calls: [LoadCall]) {
        self.calls.withLock { queue in
            for call in calls { queue.append(call) }
        }
        deliverAll()
    }

    private func deliverAll() {
        while !isReading, bytesWithDelegate <= Self.delegateLimit, let call = calls.withLock({ $0.next() }) {
            deliver(call)
        }
    }

    /// Bytes that may wait in the delegate's queue.
    private static let delegateLimit = 1 << 20

    var isPaused: Bool { calls.withLock { $0.isPaused } }

    func bodyArrived() { queue.enqueue { self.deliverAll() } }

    /// On `queue`: the task was suspended.
    func pause() {
        calls.withLock { $0.isPaused = true }
    }

    /// On `queue`: the task was resumed.
    func resume() {
        calls.withLock { $0.isPaused = false }
        deliverAll()
    }

    /// No call comes after this one. On `queue`; on Apple platforms from any thread, since the system may stop a
    /// protocol on another thread than it started it on.
    func close() {
        calls.withLock { $0.close() }
    }

    private func deliver(_ call: LoadCall) {
        guard let urlProtocol, let client = urlProtocol.client else { return }
        switch call {
        case .receive(let head):
            isUnauthorized = head.status == 401
            client.urlProtocol(urlProtocol, didReceive: head.response, cacheStoragePolicy: .notAllowed)
        case .load(let data):
            if let passesPiece, !data.isEmpty { session.delegateQueue.addOperation { passesPiece(data) } }
            client.urlProtocol(urlProtocol, didLoad: data)
            if acceptsPieces { countWithDelegate(data.count) }
        case .read(let piece): read(piece)
        case .stream: break
        case .confirmStorage(let response, let completion): confirmStorage(of: response, completion: completion)
        case .finish:
            close()
            client.urlProtocolDidFinishLoading(urlProtocol)
            hasEnded = !isUnauthorized
        case .fail(let error, let report):
            close()
            client.urlProtocol(urlProtocol, didFailWithError: error)
            hasEnded = true
            // A piece could not be read, and the load itself may go on.
            if report == nil { (urlProtocol as? CachingURLProtocol)?.cancelLoad() }
        }
    }

    /// Reads a piece where nobody else waits for the disk, and delivers it next.
    private func read(_ piece: OpenBody) {
        isReading = true
        CacheCore.lookupQueue.async { [self] in
            let call: LoadCall = piece.contents.map { .load($0) } ?? .fail(URLError(.resourceUnavailable), nil)
            queue.enqueue {
                self.isReading = false
                self.calls.withLock { $0.putBack(call) }
                self.deliverAll()
            }
        }
    }

    /// Foundation puts each piece into the delegate's queue. After some of them an operation follows that reports them.
    private func countWithDelegate(_ bytes: Int) {
        bytesWithDelegate += bytes
        unreportedBytes += bytes
        guard unreportedBytes >= OpenBody.pieceLength else { return }
        let reported = unreportedBytes
        unreportedBytes = 0
        session.delegateQueue.addOperation { [self] in
            queue.enqueue {
                self.bytesWithDelegate -= reported
                self.deliverAll()
            }
        }
    }

    // MARK: The delegates' decisions

    private func confirmStorage(
        of response: CachedURLResponse, completion: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard acceptsPieces, let dataTask = task as? URLSessionDataTask else { return completion(response) }
        session.delegateQueue.addOperation { [session, delegates] in
            for case let delegate as any URLSessionDataDelegate in delegates {
                if delegate.confirms(response, of: dataTask, in: session, completion) { return }
            }
            completion(response)
        }
    }

    func confirmRedirect(
        _ head: ResponseHead, of request: DiskURLCache.Request, to following: DiskURLCache.Request,
        completion proceed: @escaping @Sendable (DiskURLCache.Request?) -> Void
    ) {
        let head = DeliveredHead(to: request, status: head.status, fields: head.fields)
        guard !delegates.isEmpty, let response = head.response as? HTTPURLResponse else { return proceed(following) }
        let next = following.urlRequest
        let completion: @Sendable (URLRequest?) -> Void = { proceed($0.map { DiskURLCache.Request($0) }) }
        // Before the end of the task, or not at all: a cancellation puts the end into the delegate's queue from here.
        queue.enqueue { [self] in
            guard !calls.withLock({ $0.isClosed }) else { return }
            session.delegateQueue.addOperation { [session, task, delegates] in
                for delegate in delegates {
                    if delegate.confirms(response, to: next, of: task, in: session, completion) { return }
                }
                completion(next)
            }
        }
    }
}
