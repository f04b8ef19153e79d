import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a session with the loader gets for a first load is what a plain one gets: bytes, status, fields, errors.
///
/// The suite holds in both ways the loader can go: with the task's session known, and without (see
/// `LoaderFallbackTests`).
@Suite(.loadsOnLinux, .fewAtATime) struct LoaderLikeStockTests {
    enum Way: CaseIterable, Sendable { case async, handler, delegate }

    /// What came of a load, as far as a caller can see.
    struct Outcome: Equatable, Sendable {
        var status: Int?
        var fields: [String: String] = [:]
        var url: URL?
        var body = Data()
        var error: URLError.Code?
    }

    private static let large = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) })

    private static func origin() throws -> OriginServer {
        try OriginServer { request in
            switch request.path {
            case "/large": OriginResponse(fields: ["Cache-Control": "max-age=60"], body: Self.large, isChunked: true)
            case "/none": .status(204, "No Content")
            case "/missing": .status(404, "Not Found", ["X-A": "b"])
            case "/broken": .status(500, "Oops")
            case "/redirect": .status(302, "Found", ["Location": "/text"])
            case let path where path.hasPrefix("/without-location/"):
                OriginResponse(
                    status: Int(path.split(separator: "/").last ?? "") ?? 0, reason: "Elsewhere", fields: ["X-A": "b"],
                    body: Data("body".utf8))
            case "/cut": OriginResponse(body: Self.large, ending: .cutBody(after: 500))
            case "/closed": OriginResponse(ending: .noResponse)
            case "/echo": OriginResponse(fields: ["X-Method": request.method], body: request.body)
            default: .ok("text of \(request.method)", ["Cache-Control": "max-age=60", "Vary": "Accept-Encoding"])
            }
        }
    }

    private static func outcome(of request: URLRequest, _ way: Way, attached: Bool) async throws -> Outcome {
        let delegate = RecordingDelegate()
        let harness = attached ? try LoadingHarness(delegate: way == .delegate ? delegate : nil) : nil
        let session =
            harness?.session
            ?? URLSession(
                configuration: .ephemeral.patient, delegate: way == .delegate ? delegate : nil, delegateQueue: nil)
        // The harness ends its session when it is released, which is after the load.
        defer { withExtendedLifetime(harness) { if !attached { session.invalidateAndCancel() } } }
        var data: Data?
        var response: URLResponse?
        var error: (any Error)?
        switch way {
        case .async:
            do { (data, response) = try await session.data(for: request) } catch let thrown { error = thrown }
        case .handler:
            (data, response, error) = await withCheckedContinuation { continuation in
                session.dataTask(with: request) { continuation.resume(returning: ($0, $1, $2)) }.resume()
            }
        case .delegate:
            let task = session.dataTask(with: request)
            let record = await delegate.run(task)
            data = record.data
            error = record.error
            // Foundation keeps some heads from the delegate: they are in the task.
            response = record.responses.first ?? task.response
            #expect(record.responses.count <= 1 && record.ends.count == 1)
        }
        if let error { return Outcome(error: (error as? URLError)?.code) }
        let http = try #require(response as? HTTPURLResponse)
        var fields: [String: String] = [:]
        for case (let name as String, let value as String) in http.allHeaderFields where name != "Date" {
            fields[name.lowercased()] = value
        }
        return Outcome(status: http.statusCode, fields: fields, url: http.url, body: data ?? Data())
    }

    @Test(arguments: [
        "/text", "/text?page=2", "/large", "/none", "/missing", "/broken", "/redirect", "/cut", "/closed",
        "/without-location/301", "/without-location/302", "/without-location/303", "/without-location/305",
        "/without-location/307", "/without-location/308", "/without-location/300",
    ]) func aFirstLoad(target: String) async throws {
        let origin = try Self.origin()
        for way in Way.allCases {
            let request = URLRequest(url: origin.url(target))
            let stock = try await Self.outcome(of: request, way, attached: false)
            let ours = try await Self.outcome(of: request, way, attached: true)
            #expect(ours == stock, "\(way)")
        }
    }

    @Test(arguments: ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) func otherMethods(method: String)
        async throws
    {
        let origin = try Self.origin()
        let body = method.hasPrefix("P") ? Data("question".utf8) : nil
        let request = URLRequest(origin.url("/echo"), method: method, body: body)
        for way in Way.allCases {
            let stock = try await Self.outcome(of: request, way, attached: false)
            let ours = try await Self.outcome(of: request, way, attached: true)
            #expect(ours == stock && ours.status == 200, "\(way)")
        }
    }
}

#if os(Linux)
    /// The same where a task's session cannot be found out: everything is Foundation's own, and nothing is stored.
    @Suite(.loadsOnLinux, .fewAtATime) struct LoaderFallbackTests {
        @Test(.enabled(if: LoadingHarness.storesForSessions)) func allIsAsWithoutTheLoader() throws {
            let process = Process()
            process.executableURL = URL(
                fileURLWithPath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
            process.arguments = [
                "--testing-library", "swift-testing", "--filter",
                "LoaderLikeStockTests|LoaderPassThroughTests|LoaderFallbackTests",
            ]
            process.environment = ProcessInfo.processInfo.environment.merging(["DISKURLCACHE_NO_MIRROR": "1"]) { $1 }
            let output = Pipe()
            process.standardOutput = output
            process.standardError = output
            try process.run()
            let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            process.waitUntilExit(of: "the test without the mirror")
            #expect(process.terminationStatus == 0 && process.terminationReason == .exit, "\(text)")
            #expect(text.contains("aFirstLoad"))
        }

        @Test(.enabled(if: !LoadingHarness.storesForSessions, "for a Foundation that the loader cannot read"))
        func nothingIsStored() async throws {
            let origin = try OriginServer.counting()
            let harness = try LoadingHarness()
            for round in 1...2 {
                let loaded = try await harness.load(origin.url("/a"))
                #expect(loaded.text == "\(round)")
            }
            #expect(!harness.cache.contains(URLRequest(origin.url("/a"))))
            // Without a task the cache loads as ever.
            for _ in 1...2 {
                let answer = try await harness.cache.data(from: origin.url("/b"))
                #expect(answer.data == Data("3".utf8))
            }
        }
    }
#endif
