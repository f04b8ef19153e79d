#if canImport(FoundationNetworking)
    import Foundation
    import FoundationNetworking
    import Testing

    @testable import DiskURLCache

    /// A redirect that comes while its task is cancelled.
    @Suite(.fewAtATime) struct CancelledRedirectTests {
        /// Foundation has told the task's end by then, and the app may have forgotten the task.
        @Test func noRedirectIsAskedAboutAfterIt() async throws {
            let delegate = RecordingDelegate()
            let harness = try LoadingHarness(delegate: delegate)
            let session = harness.session
            let task = session.dataTask(with: Responses.request("/a"))
            let queue = DispatchQueue(label: "client")
            let urlProtocol = CachingURLProtocol(task: task, cachedResponse: nil, client: nil)
            let port = ClientPort(
                urlProtocol, task: task, session: session, queue: queue, delegates: [delegate], acceptsPieces: true)
            for isCancelled in [false, true] {
                queue.sync {
                    port.confirmRedirect(
                        ResponseHead(status: 302, fields: ["Location": "/b"]),
                        of: DiskURLCache.Request(Responses.request("/a")),
                        to: DiskURLCache.Request(Responses.request("/b"))
                    ) { _ in }
                    if isCancelled { port.close() }
                }
                // What follows in both queues.
                queue.sync {}
                await withCheckedContinuation { continuation in
                    session.delegateQueue.addOperation { continuation.resume() }
                }
                #expect(await delegate.record(of: task) { _ in true }.redirects.count == 1)
            }
        }
    }
#endif
