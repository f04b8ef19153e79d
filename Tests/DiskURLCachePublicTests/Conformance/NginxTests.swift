// iPhones run no other programs.
#if os(macOS) || os(Linux)
    import DiskURLCache
    import Foundation
    import Testing

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// A real origin that nobody here wrote: static files with entity tags, `expires`, gzip and ranges.
    @Suite(
        .loadsOnLinux, .fewAtATime,
        .enabled(if: NginxServer.path != nil, "nginx is not installed: apt-get install nginx-light, or .ci/run does"))
    final class NginxTests {
        private let server: NginxServer
        private let scratch: ScratchDirectory
        private let cache: DiskURLCache
        private let session: URLSession
        private static let longAgo = Date(timeIntervalSince1970: 1_600_000_000)

        init() throws {
            server = try NginxServer()
            scratch = try ScratchDirectory("nginx-client")
            cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 16 << 20, directory: scratch.appending("cache"))
            session = cache.makeSession(configuration: .default.patient)
        }

        deinit {
            session.finishTasksAndInvalidate()
            // The session lives on for a moment, and the cache with it: what it still wrote would outlast `scratch`.
            cache.flush()
        }

        private func load(
            _ path: String, _ fields: [String: String] = [:]
        ) async throws -> Loaded {
            try await LoadingHarness.load(URLRequest(server.url(path), fields), in: session)
        }

        private func serve(_ text: String, at path: String, modified: Date = longAgo) throws {
            try server.serve(Data(text.utf8), at: path, modified: modified)
        }

        @Test func hitUntilExpiry() async throws {
            try serve("one", at: "/fresh/a.txt")
            let first = try await load("/fresh/a.txt")
            try serve("two", at: "/fresh/a.txt")
            let second = try await load("/fresh/a.txt")
            #expect(first.text == "one" && second.text == "one")
            #expect(first.id != nil && second.id == first.id)
            #expect(first["Age"] == nil && second["Age"] != nil)
        }

        @Test(arguments: ["/checked/a.txt", "/expired/a.txt"]) func notModifiedKeepsTheBody(path: String) async throws {
            try serve("one", at: path)
            let first = try await load(path)
            let second = try await load(path)
            #expect(first["X-Status"] == "200" && first.text == "one")
            #expect(second.status == 200 && second.text == "one")
            // The 304's own fields freshen the stored ones.
            #expect(second["X-Status"] == "304" && second.id != first.id)
            #expect(second["Content-Length"] == first["Content-Length"])
            let third = try await load(path)
            #expect(third["X-Status"] == "304" && third.id != second.id && third.text == "one")
        }

        @Test func modifiedIsFetchedAnew() async throws {
            try serve("one", at: "/checked/a.txt")
            _ = try await load("/checked/a.txt")
            try serve("three", at: "/checked/a.txt", modified: Self.longAgo + 60)
            let second = try await load("/checked/a.txt")
            #expect(second.text == "three" && second["X-Status"] == "200")
            let third = try await load("/checked/a.txt")
            #expect(third.text == "three" && third["X-Status"] == "304")
        }

        @Test func goneIsNotAnsweredFromTheStore() async throws {
            try serve("one", at: "/checked/a.txt")
            _ = try await load("/checked/a.txt")
            try server.remove("/checked/a.txt")
            #expect(try await load("/checked/a.txt").status == 404)
        }

        @Test(arguments: ["/gzip/a.txt", "/gzip-checked/a.txt"]) func gzipBodiesStayDecoded(path: String) async throws {
            let text = String(repeating: "the same line again\n", count: 1_000)
            try serve(text, at: path)
            let first = try await load(path)
            let second = try await load(path)
            #expect(first["Content-Encoding"] == "gzip" && first.text == text)
            #expect(first["ETag"]?.hasPrefix("W/") == true && first["Vary"] == "Accept-Encoding")
            #expect(second.text == text)
            if path.hasPrefix("/gzip/") {
                #expect(second.id == first.id)
            } else {
                #expect(second["X-Status"] == "304")
            }
            // Another variant is asked for by offering the stored one's tag, which nginx takes for good enough.
            let plain = try await load(path, ["Accept-Encoding": "identity"])
            #expect(plain.text == text && plain["X-Status"] == "304" && plain.id != first.id)
        }

        @Test func permanentRedirectLeadsToTheStoredTarget() async throws {
            try serve("target", at: "/fresh/target.txt")
            // The first load of a URL that redirects may be Foundation's own, which asks for the target anew and stores
            // it.
            let first = try await load("/moved/away")
            let again = try await load("/moved/away")
            #expect(again.text == "target" && again.id == first.id)
            #expect(again.response.url == server.url("/fresh/target.txt"))
            #expect(try await load("/fresh/target.txt").id == first.id)
        }
    }

    extension Loaded {
        /// Names the request that nginx answered.
        fileprivate var id: String? { self["X-Request"] }
    }
#endif
