import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Cancelling at any moment ends the task with `.cancelled`, once, and disturbs nobody else.
///
/// A call to the client of a stopped protocol would end the process, so each of these would crash rather than fail.
@Suite(.loadsOnLinux, .fewAtATime) struct LoaderCancellationTests {
    /// The connection is free for the next load, although the origin never answered.
    @Test func beforeTheHead() async throws {
        let gate = Gate()
        let origin = try OriginServer { request in
            var response = OriginResponse.ok("x", ["Cache-Control": "max-age=60"])
            if request.number == 1 { response.beforeHead = { gate.wait() } }
            return response
        }
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate, session: { $0.httpMaximumConnectionsPerHost = 1 })
        let task = harness.session.dataTask(with: origin.url("/a"))
        task.resume()
        await gate.arrival()
        task.cancel()
        let record = await delegate.end(of: task)
        #expect((record.error as? URLError)?.code == .cancelled && record.responses.isEmpty)
        #expect(try await harness.load(origin.url("/a")).text == "x")
        gate.open()
    }

    @Test func inTheMiddleOfTheBody() async throws {
        let gate = Gate()
        let origin = try OriginServer.inTwoPieces(gate)
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate)
        let task = harness.session.dataTask(with: origin.url("/a"))
        task.resume()
        _ = await delegate.record(of: task) { !$0.chunks.isEmpty }
        task.cancel()
        let record = await delegate.end(of: task)
        #expect((record.error as? URLError)?.code == .cancelled && record.ends.count == 1)
        gate.open()
        #expect(!harness.cache.contains(URLRequest(origin.url("/a"))))
    }

    /// From memory, from disk, from the network, past the cache: the moment of cancellation falls everywhere between
    /// resume and end.
    @Test(arguments: ["memory", "disk", "network", "redirect", "pass"]) func atAnyMoment(source: String) async throws {
        let origin = try OriginServer { request in
            request.target.contains("?redirect")
                ? .status(302, "", ["Location": "/a"]) : .ok("body", ["Cache-Control": "max-age=60"])
        }
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate, memoryCapacity: source == "memory" ? 1 << 20 : 0)
        try await harness.load(origin.url("/a"))
        harness.cache.flush()
        for round in 0..<200 {
            let url =
                switch source {
                case "network", "redirect": origin.url("/\(round)?\(source)")
                default: origin.url("/a")
                }
            let task = harness.session.dataTask(with: URLRequest(url, method: source == "pass" ? "POST" : "GET"))
            task.resume()
            // Each round a little later, without sleeping.
            for _ in 0..<round * 20 { _ = task.taskIdentifier }
            if round % 4 == 3 { task.suspend() }
            task.cancel()
            let record = await delegate.end(of: task)
            #expect(record.ends.count == 1)
            if let error = record.error { #expect((error as? URLError)?.code == .cancelled) }
        }
        #expect(try await harness.load(origin.url("/a")).text == "body")
    }

    @Test func invalidatingTheSession() async throws {
        let gate = Gate()
        let origin = try OriginServer.held(by: gate, "x", ["Cache-Control": "max-age=60"])
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate)
        let other = LoadingHarness.session(of: harness.cache)
        let url = origin.url("/b")
        let survivor = Task { try await LoadingHarness.load(URLRequest(url), in: other) }
        let tasks = (0..<8).map { _ in harness.session.dataTask(with: origin.url("/a")) }
        for task in tasks { task.resume() }
        await gate.arrival(2)
        harness.session.invalidateAndCancel()
        for task in tasks {
            #expect((await delegate.end(of: task).error as? URLError)?.code == .cancelled)
        }
        gate.open()
        #expect(try await survivor.value.text == "x")
    }
}
