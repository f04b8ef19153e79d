import Foundation

/// The first step of a client's load: what memory knows of the stored responses, and the decision by that. If memory
/// has the answer, the load ends here. Any other goes on with a driver.
struct LoadBeginning: ~Copyable {
    enum Step {
        /// Memory has the whole answer, and nothing else is to be done.
        case answer(LoadMachine.StoredAnswer, body: Data)
        /// Memory knows all that is stored: what the machine decided.
        case perform([LoadMachine.Action])
        /// The rest of the stored responses is on disk.
        case lookUp(@Sendable () -> StoredResponses)
    }

    let cache: CacheCore
    private(set) var machine: LoadMachine
    let step: Step

    /// Looks into memory, and decides.
    /// - Parameters:
    ///   - streams: whether the client takes the pieces of a body as they arrive.
    ///   - confirmsStorage: whether the client is asked before a response is stored.
    init(_ request: ResolvedRequest, in cache: CacheCore, streams: Bool, confirmsStorage: Bool = false) {
        let now = cache.now
        self.cache = cache
        machine = LoadMachine(
            request, streams: streams, confirmsStorage: confirmsStorage || cache.editsResponses, at: now)
        switch StoredResponses.find(for: request, in: cache) {
        case .memory(let stored):
            let actions = machine.decide(by: stored, now: now)
            if actions.count == 1, case .answer(let answer) = actions[0], case .memory(let body) = answer.body {
                step = .answer(answer, body: body)
            } else {
                step = .perform(actions)
            }
        case .disk(let read): step = .lookUp(read)
        }
    }

    /// Whether memory has the answer, and cookies make no difference to that. (The key ignores them.)
    var isAnsweredForAllCookies: Bool {
        guard case .answer = step else { return false }
        return !machine.stored.variants.contains { $0.metadata.varyKey.names("cookie") }
    }

    /// Does the load.
    /// - Parameter place: on the client's queue inside `startLoading`, or elsewhere.
    /// - Returns: nil if the client has the whole answer already.
    consuming func go(
        over transport: any LoadTransport, to client: any LoadClient, at place: LoadDriver.Place
    ) -> LoadDriver? {
        if let (head, body, report) = end() {
            let calls: [LoadCall] =
                body.isEmpty ? [.receive(head), .finish(report)] : [.receive(head), .load(body), .finish(report)]
            if place == .client { client.perform(calls) } else { client.send(calls) }
            return nil
        }
        let driver = LoadDriver(machine, cache, transport, client)
        driver.start(with: step, at: place)
        return driver
    }

    /// Ends the load, if memory has its answer. An answer that gets further tags is left to a driver, since they are
    /// written to disk.
    mutating func end() -> (head: DeliveredHead, body: Data, report: LoadReport)? {
        guard case .answer(let answer, let body) = step, !cache.lacksTags(answer.variant, of: machine.hop) else {
            return nil
        }
        let span: Trace.Span = Trace.begin("load")
        let head = answer.head(to: machine.hop.request, machine.report, in: cache)
        machine.report.end(at: cache.now, error: nil)
        let report = machine.report
        Trace.end("load", span, report.cacheStatus(name: nil).fieldValue)
        report.publish(of: machine.hop, using: answer.variant, in: cache)
        return (head, body, report)
    }
}
