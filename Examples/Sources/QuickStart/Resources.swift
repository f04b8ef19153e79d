import ExampleSupport
import Foundation

/// The origin's resources: one for each kind of response that the example shows.
enum Resources {
    static let targets = [
        "/articles.json", "/photo.jpg", "/list?page=1", "/list?page=2", "/profile", "/old-name", "/notes.txt",
        "/balance",
    ]

    static let notes = [
        "/articles.json": "max-age=600",
        "/photo.jpg": "max-age=86400",
        "/list?page=1": "max-age=600",
        "/list?page=2": "another page, another entry",
        "/profile": "no-cache + ETag: asks each time",
        "/old-name": "301 to /new-name, each stored",
        "/notes.txt": "gzip, max-age=600",
        "/balance": "no-store: never cached",
    ]

    @Sendable static func answer(_ request: Origin.Request) async -> Origin.Reply {
        switch request.path {
        case "/articles.json":
            let articles = (1...40).map { #"{"id":\#($0),"title":"Article \#($0)"}"# }
            return Origin.Reply(
                fields: ["Content-Type": "application/json", "Cache-Control": "max-age=600"],
                text: "[\(articles.joined(separator: ","))]")
        case "/photo.jpg":
            // Not a real picture, but as large as one: 150,000 bytes.
            let bytes = (0..<150_000).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 >> 8) }
            return Origin.Reply(
                fields: ["Content-Type": "image/jpeg", "Cache-Control": "max-age=86400"], body: Data(bytes))
        case "/list":
            return Origin.Reply(
                fields: ["Content-Type": "text/plain", "Cache-Control": "max-age=600"],
                text: "This is page \(request.query["page"] ?? "?").")
        case "/profile":
            return Origin.Reply(
                fields: ["Content-Type": "application/json", "Cache-Control": "no-cache", "ETag": #""v7""#],
                text: #"{"name":"Ada","motto":"\#(String(repeating: "la ", count: 300))"}"#)
        case "/old-name":
            return Origin.Reply(301, fields: ["Location": "/new-name", "Cache-Control": "max-age=600"])
        case "/new-name":
            return Origin.Reply(
                fields: ["Content-Type": "text/plain", "Cache-Control": "max-age=600"], text: "Here it is now.")
        case "/notes.txt":
            return Origin.Reply(
                fields: [
                    "Content-Type": "text/plain", "Content-Encoding": "gzip", "Cache-Control": "max-age=600",
                ], body: gzippedNotes)
        case "/balance":
            return Origin.Reply(
                fields: ["Content-Type": "text/plain", "Cache-Control": "no-store"],
                text: "Balance at \(Date().timeIntervalSince1970)")
        default:
            return Origin.Reply(404, text: "Nothing here.")
        }
    }

    /// 3,000 bytes of text in 96, made by gzip: what URLSession hands out and the cache keeps are the 3,000.
    private static let gzippedNotes =
        Data(
            base64Encoded: """
                H4sIAAAAAAACA+3L0QmAMAyE4VVuAHGJThJLsEEx0KSI26u4g0/3dvDfV6Q2xdkkkc/wbqsd2DUDlw/UN0+Q2GAJWX\
                x8v66RMwoxMTExMTExMTEx8R/4BgVEqAK4CwAA
                """) ?? Data()
}
