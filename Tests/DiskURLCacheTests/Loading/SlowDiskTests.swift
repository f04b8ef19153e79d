import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A disk that is slow for one load holds up nothing else of the session.
@Suite(.loadsOnLinux, .fewAtATime) struct SlowDiskTests {
    /// While the first write is blocked, another load of the session ends; the first one ends after its store.
    @Test(arguments: [4 << 10, 3 << 20], ["no-store", "max-age=60"])
    func aSlowWriteHoldsUpItsOwnLoadOnly(bytes: Int, control: String) async throws {
        let gate = Gate()
        let hasBegun = Flag()
        let isFirst = Mutex(true)
        let files = FaultyFileSystem { call in
            guard call.operation == .write, call.isRecord || call.name.hasPrefix("incoming"),
                isFirst.withLock({ first in
                    defer { first = false }
                    return first
                })
            else { return nil }
            hasBegun.set()
            gate.wait()
            return nil
        }
        defer { gate.open() }
        let origin = try OriginServer { request in
            request.target == "/slow"
                ? OriginResponse(fields: ["Cache-Control": "max-age=60"], body: testBody(1, length: bytes))
                : .ok("fast", ["Cache-Control": control])
        }
        let harness = try LoadingHarness { $0.fileSystem = files }
        harness.cache.flush()
        let slowEnded = Flag()
        let slow = Task {
            let loaded = try await harness.load(origin.url("/slow"))
            slowEnded.set()
            return loaded.data
        }
        await hasBegun.isSet()
        // Keys of one stripe are changed one after another.
        let core = harness.cache.core
        func stripe(_ path: String) -> ObjectIdentifier? {
            core.key(for: URLRequest(origin.url(path))).map { ObjectIdentifier(core.store.stripe(of: $0)) }
        }
        let fast = try #require((0..<100).lazy.map { "/fast-\($0)" }.first { stripe($0) != stripe("/slow") })
        let isDone = Flag()
        let other = Task {
            let text = try await harness.load(origin.url(fast)).text
            isDone.set()
            return text
        }
        await isDone.isSet()
        #expect(!slowEnded.value)
        gate.open()
        #expect(try await slow.value == testBody(1, length: bytes))
        #expect(try await other.value == "fast")
        // On disk when the end of the load was called.
        harness.cache.removeAllCachedResponses(from: .memory)
        #expect(harness.cache.contains(URLRequest(origin.url("/slow"))))
    }

    /// What a delegate hears of many tiny loads: the head, all data, the question, the end.
    @Test func theQuestionWhetherToStoreComesAfterAllData() async throws {
        let origin = try OriginServer.counting()
        let delegate = OrderDelegate()
        let harness = try LoadingHarness(delegate: delegate)
        let tasks = (0..<200).map { harness.session.dataTask(with: origin.url("/\($0)")) }
        for task in tasks { task.resume() }
        for task in tasks {
            await eventually("the end of a load") { delegate.heard(by: task).last == "end" }
            #expect(delegate.heard(by: task) == ["head", "data", "question", "end"])
        }
    }

    private final class OrderDelegate: NSObject, URLSessionDataDelegate, Sendable {
        private let calls = Mutex<[Int: [String]]>([:])

        func heard(by task: URLSessionTask) -> [String] { calls.withLock { $0[task.taskIdentifier] ?? [] } }

        private func note(_ call: String, _ task: URLSessionTask) {
            calls.withLock { $0[task.taskIdentifier, default: []].append(call) }
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            note("head", dataTask)
            completionHandler(.allow)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            note("data", dataTask)
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
            completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
        ) {
            note("question", dataTask)
            completionHandler(proposedResponse)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            note("end", task)
        }
    }
}
