import DiskURLCache
import Foundation

/// A request of the matrix, as its origin sees it.
struct MatrixRequest: Sendable {
    /// The path behind the cell's own folder: `a` for the first request of a load.
    var path: String
    /// The cell's folder at this origin, `/m/7/3`.
    var folder: String
    /// The same folder at another origin, as a URL.
    var elsewhere: String
    /// This origin, as a URL without a path.
    var here: String
    var wire: OriginRequest

    /// The answer to an ordinary request: a body that names its path, so that an answer to a different request is
    /// noticed.
    func ok(_ fields: OriginFields = ["Cache-Control": "max-age=86400"]) -> OriginResponse {
        .ok("body of \(path)", fields)
    }
}

/// What a load says by the cache alone, and why a load without a cache says something else.
struct MatrixOwnAnswer: Sendable {
    var reason: String
    /// As `MatrixOrigins.normal` writes it.
    var url: String
    var status = 200
    var body: String

    var outcome: MatrixOutcome { ["url": url, "status": "\(status)", "body": body] }
}

/// A request and the answers to it: one row of the matrix.
struct MatrixShape: Sendable {
    var name: String
    /// Behind the cell's folder.
    var target = "a"
    var method = "GET"
    var fields: [String: String] = [:]
    /// How many requests reach the origin in four loads, of which the last is from disk; nil where that is not the
    /// point.
    var requests: Int?
    /// Set if a load without a cache says something else: the loads of the cache say this, and the same among
    /// themselves.
    var own: MatrixOwnAnswer?
    var answer: @Sendable (MatrixRequest) -> OriginResponse

    init(
        _ name: String, _ target: String = "a", method: String = "GET", fields: [String: String] = [:],
        requests: Int? = nil, own: MatrixOwnAnswer? = nil, answer: @escaping @Sendable (MatrixRequest) -> OriginResponse
    ) {
        self.name = name
        self.target = target
        self.method = method
        self.fields = fields
        self.requests = requests
        self.own = own
        self.answer = answer
    }

    static let all = redirects + locations + lifetimes + framings + others

    /// With a trailer field Foundation on Linux ends the process, with a cache or without: other clients only.
    static let ofOtherClients: [MatrixShape] = [
        MatrixShape("trailers", requests: 1) { _ in
            raw(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=86400\r\nConnection: close\r\n"
                    + "Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
                    + "5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n")
        }
    ]
    /// A shape's place here is in its URLs.
    static let every = all + ofOtherClients

    private static let day: OriginFields = ["Cache-Control": "max-age=86400"]
    private static let large = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) })

    private static func redirect(_ status: Int, to location: String?, _ fields: OriginFields) -> OriginResponse {
        var fields = fields
        if let location { fields.append("Location", location) }
        return OriginResponse(status: status, reason: "Elsewhere", fields: fields, body: Data("moved".utf8))
    }

    // MARK: - Redirects

    /// Each status, with each lifetime of the redirect; the target is good for a day, so that a target in the place of
    /// a redirect shows.
    private static let redirects: [MatrixShape] = [300, 301, 302, 303, 305, 307, 308].flatMap { status in
        [("", [:] as OriginFields), ("max-age", day), ("no-store", ["Cache-Control": "no-store"])].map {
            name, lifetime in
            // Without a lifetime of their own 301 and 308 are stored by heuristics, if they have a date to reckon from:
            // these have none.
            let requests = ["max-age": 2, "no-store": 5]
            return MatrixShape(
                "\(status) \(name)", requests: [300, 305].contains(status) ? nil : requests[name],
                own: status == 305
                    ? MatrixOwnAnswer(
                        reason: "a 305 is not followed (RFC 9110 §15.4.6)", url: "here/a", status: 305, body: "moved")
                    : nil
            ) { request in
                request.path == "a" ? redirect(status, to: request.folder + "/t", lifetime) : request.ok()
            }
        }
    }

    /// Forms of `Location`, of redirects that are stored and of those that are not.
    private static let locations: [MatrixShape] = [301, 302, 303, 307, 308].flatMap { status in
        /// A target that Foundation on Linux looks for elsewhere, with the cache's.
        func found(_ url: String, _ body: String, _ reason: String) -> MatrixOwnAnswer {
            MatrixOwnAnswer(reason: reason, url: "here/" + url, body: "body of " + body)
        }
        func asItCame(_ reason: String) -> MatrixOwnAnswer {
            MatrixOwnAnswer(reason: reason, url: "here/c/a", status: status, body: "moved")
        }
        let resolved = "Foundation on Linux resolves `Location` against the root; the cache does as RFC 3986 §5 says"
        let forms: [(String, MatrixOwnAnswer?, @Sendable (MatrixRequest) -> String?)] = [
            ("relative", found("c/t", "c/t", resolved), { _ in "t" }),
            ("dot segments", found("x/t", "x/t", resolved), { _ in "../x/./t" }),
            ("query", found("c/t?b=2&a=1", "c/t", resolved), { _ in "t?b=2&a=1" }),
            ("only a query", found("c/a?b=2", "c/a", resolved), { _ in "?b=2" }),
            ("fragment", nil, { $0.folder + "/t#there" }),
            (
                "escaped",
                found(
                    "t%2Fu%20v%C3%A9", "t%2Fu%20v%C3%A9",
                    "Foundation on Linux decodes `%2F`, which is another path (RFC 3986 §6.2.2.2)"),
                { $0.folder + "/t%2Fu%20v%C3%A9" }
            ),
            ("same origin", nil, { $0.here + $0.folder + "/t" }),
            ("other origin", nil, { $0.elsewhere + "/t" }),
            ("without a scheme", nil, { "//" + $0.elsewhere.dropFirst("http://".count) + "/t" }),
            ("ftp", asItCame("a redirect that leaves HTTP is delivered as it came"), { _ in "ftp://127.0.0.1:1/t" }),
            (
                "unknown scheme",
                asItCame("Foundation on Linux makes a path of it; the cache delivers the redirect as it came"),
                { _ in "foo:bar" }
            ),
            ("empty", nil, { _ in "" }),
            ("none", nil, { _ in nil }),
        ]
        let isStored = status == 301 || status == 308
        return forms.map { name, own, location in
            MatrixShape("\(status) to: \(name)", "c/a", own: own) { request in
                guard request.path == "c/a", !request.wire.target.contains("?") else { return request.ok() }
                return redirect(status, to: location(request), isStored ? day : [:])
            }
        }
    }

    // MARK: - Lifetimes and validators

    private static let lifetimes: [MatrixShape] = [
        MatrixShape("fresh", requests: 1) { $0.ok() },
        MatrixShape("no-store", requests: 4) { $0.ok(["Cache-Control": "no-store"]) },
        MatrixShape("no-cache with a tag", requests: 4) { request in
            let fields: OriginFields = ["Cache-Control": "no-cache", "ETag": "\"v1\""]
            guard request.wire.fields["If-None-Match"] == "\"v1\"" else { return request.ok(fields) }
            return .status(304, "Not Modified", fields)
        },
        MatrixShape("heuristic", requests: 1) { $0.ok(["Last-Modified": "Mon, 01 Jan 2018 00:00:00 GMT"]) },
        MatrixShape("without a lifetime", requests: 4) { $0.ok([:]) },
        MatrixShape("expired", requests: 4) { $0.ok(["Expires": "Mon, 01 Jan 2018 00:00:00 GMT"]) },
        MatrixShape("Vary: *", requests: 4) { $0.ok(["Cache-Control": "max-age=60", "Vary": "*"]) },
        MatrixShape("Vary: Accept", fields: ["Accept": "text/plain"], requests: 1) {
            $0.ok(["Cache-Control": "max-age=86400", "Vary": "Accept"])
        },
        MatrixShape("404 fresh", requests: 1) {
            OriginResponse(status: 404, reason: "No", fields: day, body: Data($0.path.utf8))
        },
        MatrixShape("410", requests: nil) { OriginResponse(status: 410, reason: "Gone", body: Data($0.path.utf8)) },
        MatrixShape("500") { OriginResponse(status: 500, reason: "Oops", body: Data($0.path.utf8)) },
        MatrixShape("503", requests: 4) {
            OriginResponse(status: 503, reason: "Busy", fields: ["Retry-After": "5"], body: Data($0.path.utf8))
        },
        // Without `WWW-Authenticate`: with it, Foundation on Linux never ends a load that nobody gives a password.
        MatrixShape("401") { _ in .status(401, "Who") },
        MatrixShape("request no-store", fields: ["Cache-Control": "no-store"], requests: 4) { $0.ok() },
    ]

    // MARK: - Framing and codings

    private static let framings: [MatrixShape] = [
        MatrixShape("chunked", requests: 1) { request in
            var answer = request.ok()
            answer.isChunked = true
            answer.partSize = 4
            return answer
        },
        MatrixShape("chunked, cut", requests: 4) { request in
            var answer = request.ok()
            answer.isChunked = true
            answer.partSize = 4
            answer.ending = .cutBody(after: 8)
            return answer
        },
        MatrixShape("length too long", requests: 4) { request in
            var answer = request.ok(["Cache-Control": "max-age=86400", "Content-Length": "100"])
            answer.ending = .close
            return answer
        },
        MatrixShape("length too short") { _ in
            raw(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=86400\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhello"
            )
        },
        MatrixShape("until the end") { _ in raw("HTTP/1.1 200 OK\r\nCache-Control: max-age=86400\r\n\r\nhello") },
        MatrixShape("HTTP/1.0") { _ in
            raw("HTTP/1.0 200 OK\r\nCache-Control: max-age=86400\r\nContent-Length: 5\r\n\r\nhello")
        },
        MatrixShape("no reason phrase") { _ in
            raw("HTTP/1.1 200\r\nCache-Control: max-age=86400\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello")
        },
        MatrixShape("not HTTP") { _ in raw("hello, this is no answer\r\n\r\n") },
        MatrixShape("early end", requests: 4) { request in
            var answer = request.ok()
            answer.ending = .cutBody(after: 3)
            return answer
        },
        MatrixShape("hangs up") { _ in OriginResponse(ending: .noResponse) },
        MatrixShape("closes", requests: 1) { request in
            var answer = request.ok()
            answer.ending = .close
            return answer
        },
        MatrixShape("gzip", requests: 1) { _ in
            OriginResponse(fields: ["Cache-Control": "max-age=86400", "Content-Encoding": "gzip"], body: gzip)
        },
        MatrixShape("damaged gzip") { _ in
            OriginResponse(
                fields: ["Cache-Control": "max-age=86400", "Content-Encoding": "gzip"], body: gzip.prefix(20))
        },
        MatrixShape("unknown coding") { $0.ok(["Cache-Control": "max-age=86400", "Content-Encoding": "new"]) },
        MatrixShape("empty", requests: 1) { _ in .ok("", day) },
        MatrixShape("large", requests: 1) { _ in
            OriginResponse(fields: day, body: large)
        },
    ]

    // MARK: - Others

    private static let others: [MatrixShape] = [
        MatrixShape("204", requests: 1) { _ in .status(204, "No Content", day) },
        MatrixShape("206 unasked", requests: 4) { _ in
            OriginResponse(
                status: 206, reason: "Part",
                fields: ["Cache-Control": "max-age=86400", "Content-Range": "bytes 0-3/10"],
                body: Data("0123".utf8))
        },
        MatrixShape("206 asked", fields: ["Range": "bytes=2-5"]) { _ in
            OriginResponse(
                status: 206, reason: "Part",
                fields: ["Cache-Control": "max-age=86400", "Content-Range": "bytes 2-5/10", "ETag": "\"v1\""],
                body: Data("2345".utf8))
        },
        MatrixShape("200 to a range", fields: ["Range": "bytes=2-5"]) { $0.ok() },
        MatrixShape("416", fields: ["Range": "bytes=20-"]) { _ in .status(416, "No", ["Content-Range": "bytes */10"]) },
        MatrixShape("304 unasked", requests: 4) { _ in .status(304, "Not Modified", ["ETag": "\"v1\""]) },
        MatrixShape("304 asked", fields: ["If-None-Match": "\"v1\""]) { _ in
            .status(304, "Not Modified", ["ETag": "\"v1\""])
        },
        // Not stored by itself.
        MatrixShape("HEAD", method: "HEAD", requests: 4) { $0.ok() },
        MatrixShape("HEAD 302", method: "HEAD") { request in
            request.path == "a" ? redirect(302, to: request.folder + "/t", [:]) : request.ok()
        },
        MatrixShape("POST", method: "POST", requests: 4) { $0.ok() },
        MatrixShape("POST 303", method: "POST") { request in
            request.path == "a" ? redirect(303, to: request.folder + "/t", [:]) : request.ok()
        },
        MatrixShape("POST 307", method: "POST") { request in
            request.path == "a" ? redirect(307, to: request.folder + "/t", [:]) : request.ok()
        },
        MatrixShape("103 before", requests: 1) { request in
            var answer = request.ok()
            answer.interim = [.init(status: 103, reason: "Early Hints", fields: ["Link": "</s>", "X-Early": "1"])]
            return answer
        },
        MatrixShape("100 before", requests: 1) { request in
            var answer = request.ok()
            answer.interim = [.init(status: 100, reason: "Continue")]
            return answer
        },
        MatrixShape("a field twice", requests: 1) {
            $0.ok(["Cache-Control": "max-age=86400", "X-A": "1", "x-a": "2", "X-A": "3"])
        },
        MatrixShape("odd values", requests: 1) {
            $0.ok(["Cache-Control": "max-age=86400", "X-Empty": "", "X-Comma": "a,b", "X-Quoted": "\"a, b\""])
        },
        MatrixShape("Set-Cookie", requests: 1) {
            $0.ok(["Cache-Control": "max-age=86400", "Set-Cookie": "a=1; Path=/nowhere"])
        },
        MatrixShape("a query", "a?b=2&a=1", requests: 1) { $0.ok() },
        MatrixShape("a fragment", "a#there", requests: 1) { $0.ok() },
        MatrixShape("an escaped path", "a%2Fb%20c%C3%A9", requests: 1) { $0.ok() },
        MatrixShape("two hops", requests: nil) { request in
            switch request.path {
            case "a": redirect(302, to: request.folder + "/b", [:])
            case "b": redirect(301, to: request.folder + "/t", day)
            default: request.ok()
            }
        },
        MatrixShape("a loop") { redirect(302, to: $0.folder + "/a", [:]) },
        MatrixShape("a redirect to a failure") { request in
            request.path == "a" ? redirect(302, to: request.folder + "/t", [:]) : OriginResponse(ending: .noResponse)
        },
        MatrixShape("a redirect with a cookie") { request in
            request.path == "a"
                ? redirect(302, to: request.folder + "/t", ["Set-Cookie": "hop=1"])
                : .ok(
                    (request.wire.fields["Cookie"] ?? "").contains("hop=1") ? "a cookie" : "none",
                    ["Cache-Control": "no-store"])
        },
        MatrixShape("a redirect to no-store", requests: nil) { request in
            request.path == "a"
                ? redirect(301, to: request.folder + "/t", day) : request.ok(["Cache-Control": "no-store"])
        },
        MatrixShape("a redirect with credentials", fields: ["Authorization": "Basic eDp5"]) { request in
            request.path == "a"
                ? redirect(302, to: request.elsewhere + "/t", [:])
                : .ok(request.wire.fields["Authorization"] ?? "none", ["Cache-Control": "no-store"])
        },
    ]

    /// The connection is closed behind it. A text that has an end of its own says so by `Connection: close`: the next
    /// request would fail now and then, on a connection that is about to be closed.
    private static func raw(_ text: String) -> OriginResponse {
        var answer = OriginResponse()
        answer.rawBytes = Data(text.utf8)
        return answer
    }

    /// "hello, gzip".
    private static let gzip = Data([
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 215, 81, 72, 175, 202, 44, 0, 0, 74, 155, 177, 92, 11,
        0, 0, 0,
    ])
}
