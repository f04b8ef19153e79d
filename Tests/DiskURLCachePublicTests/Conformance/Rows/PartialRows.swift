/// Ranges (RFC 9110 §14, RFC 9111 §3.3 and §3.4).
extension ConformanceRow {
    static let partialContent: [ConformanceRow] = [
        .init(
            "partial-store-partial-reuse-partial", .optimal,
            partial("bytes 4-9/10").originSees("Range: bytes=-5"),
            .get.sends("Range: bytes=-5").cached.seesStatus(206).seesBody("01234")),
        whole("partial-store-complete-reuse-partial", "bytes=0-1", "01"),
        whole("partial-store-complete-reuse-partial-no-last", "bytes=1-", "1234567890"),
        whole("partial-store-complete-reuse-partial-suffix", "bytes=-1", "A", of: "0123456789A"),
        smaller("byterange", "bytes=6-8", "234"),
        smaller("absent", "bytes=6-", "234"),
        smaller("suffix", "bytes=-1", "4"),
        .init(
            "partial-store-partial-complete", .optimal, partial("bytes 0-4/10"),
            .get.originSees("Range: bytes=5-")),
        .init(
            "partial-use-headers", .required,
            .get.replies("Cache-Control: max-age=3600", "A: 1").body("01234567890"),
            .get.sends("Range: bytes=0-1").replies("A: 2").cached.seesStatus(206).seesBody("01")),
        .init(
            "partial-use-stored-headers", .required,
            .get.replies("Cache-Control: max-age=3600", "A: 1").body("01234567890"),
            .get.sends("Range: bytes=0-1").cached.seesStatus(206).seesBody("01").sees("A: 1")),
    ]

    private static func partial(_ contentRange: String) -> ConformanceStep {
        .get.sends("Range: bytes=-5").status(206).body("01234").replies(
            "Cache-Control: max-age=3600", .init("Content-Range", .text(contentRange)))
    }

    private static func whole(_ id: String, _ range: String, _ body: String, of whole: String = "01234567890") -> Self {
        Self(
            id, .optimal, .get.replies("Cache-Control: max-age=3600").body(whole),
            .get.sends(.init("Range", .text(range))).cached.seesStatus(206).seesBody(body))
    }

    private static func smaller(_ id: String, _ range: String, _ body: String) -> Self {
        Self(
            "partial-store-partial-reuse-partial-\(id)", .optimal, partial("bytes 4-9/10"),
            .get.sends(.init("Range", .text(range))).cached.seesStatus(206).seesBody(body))
    }
}
