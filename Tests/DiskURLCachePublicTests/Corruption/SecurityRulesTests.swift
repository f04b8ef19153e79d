import DiskURLCache
import Foundation
import Testing

/// The security rules of `Reliability.md` over real loads: what of a request or a response must never be in the
/// directory.
@Suite("Security rules", .loadsOnLinux, .fewAtATime) struct SecurityRulesTests {
    /// What of `marker` lies in the directory: names and bytes of all files, in whatever case.
    private func traces(of marker: String, in harness: LoadingHarness) throws -> [String] {
        harness.cache.flush()
        let files = harness.scratch.files()
        #expect(files.contains { $0.hasSuffix("lock") })
        return try files.filter { file in
            let bytes = try Data(contentsOf: harness.scratch.appending(file))
            // Byte by byte as Latin-1, so that no byte is lost.
            let text = String(bytes.map { Character(UnicodeScalar($0)) })
            let forms = [marker, Data(marker.utf8).base64EncodedString()]
            return forms.contains {
                file.range(of: $0, options: .caseInsensitive) != nil
                    || text.range(of: $0, options: .caseInsensitive) != nil
            }
        }
    }

    @Test("No byte of an Authorization, a Cookie or a request's body reaches the disk") func requestSecrets()
        async throws
    {
        let origin = try OriginServer { request in
            .ok(
                "answer \(request.number)",
                ["Cache-Control": "public, max-age=60", "Vary": "Cookie, Authorization, X-Token"])
        }
        let harness = try LoadingHarness(configure: {
            $0.keyPolicy = DiskURLCache.KeyPolicy.standard.includingBody(ofMethods: "POST").includingFields("X-Token")
        })
        let secrets = [
            "Authorization": "Bearer marker-authorization", "Cookie": "session=marker-cookie",
            "X-Token": "marker-token",
        ]
        for method in ["GET", "POST"] {
            let body = method == "POST" ? Data("{\"password\": \"marker-body\"}".utf8) : nil
            for _ in 1...2 { try await harness.load(origin.url("/a"), secrets, method: method, body: body) }
        }
        // Stored, both of them, and answered from there.
        #expect(origin.requests.count == 2)
        #expect(try traces(of: "answer 1", in: harness).count == 1)
        #expect(try traces(of: "answer 2", in: harness).count == 1)
        for marker in ["marker-authorization", "marker-cookie", "marker-token", "marker-body"] {
            #expect(try traces(of: marker, in: harness) == [], "\(marker)")
        }
    }

    @Test("No user or password of a URL reaches the disk") func credentialsInURLs() async throws {
        let origin = try OriginServer { _ in .ok("answer", ["Cache-Control": "public, max-age=60"]) }
        let harness = try LoadingHarness()
        var parts = try #require(URLComponents(url: origin.url("/marker-path"), resolvingAgainstBaseURL: true))
        parts.user = "marker-user"
        parts.password = "marker-password"
        for _ in 1...2 { try await harness.load(try #require(parts.url)) }
        #expect(origin.requests.count == 1)
        #expect(try traces(of: "marker-path", in: harness).count == 1)
        for marker in ["marker-user", "marker-password"] { #expect(try traces(of: marker, in: harness) == []) }
    }

    @Test("A no-store request or response leaves no byte anywhere in the directory", arguments: [true, false])
    func noStore(isInRequest: Bool) async throws {
        let origin = try OriginServer { _ in
            .ok(
                "marker-body",
                [
                    "Cache-Control": isInRequest ? "max-age=60" : "max-age=60, no-store", "X-Field": "marker-field",
                    "ETag": "\"marker-tag\"",
                ])
        }
        let harness = try LoadingHarness()
        let fields = isInRequest ? ["Cache-Control": "no-store", "X-Asked": "marker-asked"] : [:]
        for _ in 1...2 { #expect(try await harness.load(origin.url("/marker-path"), fields).text == "marker-body") }
        #expect(origin.requests.count == 2)
        #expect(try traces(of: "marker-", in: harness) == [])
        #expect(harness.scratch.files().allSatisfy { !$0.contains("records/") })
    }

    @Test(
        "Two Authorization values on one URL never share an entry, whatever the response says",
        arguments: ["public, max-age=60", "max-age=60, s-maxage=60", "max-age=60, must-revalidate"])
    func users(control: String) async throws {
        let origin = try OriginServer { request in
            .ok(request.fields["Authorization"] ?? "none", ["Cache-Control": control])
        }
        let harness = try LoadingHarness()
        for round in 0..<2 {
            for user in ["Bearer one", "Bearer two", "bearer one", ""] {
                let fields = user.isEmpty ? [:] : ["Authorization": user]
                let text = try await harness.load(origin.url("/a"), fields).text
                #expect(text == (user.isEmpty ? "none" : user), "round \(round)")
            }
            // From the disk the second time.
            harness.cache.flush()
            harness.cache.removeAllCachedResponses(from: .memory)
        }
        #expect(origin.requests.count == 4)
    }

    @Test("Set-Cookie is neither on the disk nor replayed from the cache") func setCookie() async throws {
        let origin = try OriginServer { _ in
            .ok("x", ["Cache-Control": "max-age=60", "Set-Cookie": "session=marker-session; Path=/"])
        }
        let harness = try LoadingHarness()
        #expect(try await harness.load(origin.url("/a"))["Set-Cookie"] != nil)
        #expect(try traces(of: "marker-session", in: harness) == [])
        for _ in 1...2 {
            #expect(try await harness.load(origin.url("/a"))["Set-Cookie"] == nil)
            harness.cache.removeAllCachedResponses(from: .memory)
        }
        #expect(origin.requests.count == 1)
    }
}
