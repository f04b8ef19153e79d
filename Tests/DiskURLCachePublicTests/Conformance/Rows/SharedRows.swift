/// Rows for shared caches, which the public suite skips for browsers (RFC 9111 §3.5, §5.2.2.7, §5.2.2.8, §5.2.2.10).
extension ConformanceRow {
    static let sharedFreshness: [ConformanceRow] = [
        lives("freshness-s-maxage-shared", .required, ["s-maxage=3600"], .get.cached),
        lives("freshness-max-age-s-maxage-shared-longer", .required, ["max-age=3600, s-maxage=1"], .get.notCached),
        lives(
            "freshness-max-age-s-maxage-shared-longer-reversed", .required, ["s-maxage=1, max-age=3600"], .get.notCached
        ),
        lives(
            "freshness-max-age-s-maxage-shared-longer-multiple", .required, ["max-age=3600", "s-maxage=1"],
            .get.notCached),
        lives("freshness-max-age-s-maxage-shared-shorter", .optimal, ["max-age=1, s-maxage=3600"], .get.cached),
        .init(
            "freshness-max-age-s-maxage-shared-shorter-expires", .optimal,
            .get.replies(.date("Expires", -10), "Cache-Control: max-age=0, s-maxage=3600").pausing, .get.cached),
        .init(
            "cc-resp-private-shared", .required, .get.replies("Cache-Control: private, max-age=3600"), .get.notCached),
    ]

    static let sharedStaleness: [ConformanceRow] = [
        lives("stale-close-proxy-revalidate", .required, ["max-age=2, proxy-revalidate"], unanswered),
        lives("stale-close-s-maxage=2", .required, ["max-age=2, s-maxage=2"], unanswered),
    ]

    static let sharedAuthorization: [ConformanceRow] = [
        authorization("other-authorization", .required, "max-age=100000", .get.notCached),
        authorization("other-authorization-public", .optimal, "max-age=3600, public", .get.cached),
        authorization("other-authorization-must-revalidate", .optimal, "max-age=3600, must-revalidate", .get.cached),
        authorization("other-authorization-smaxage", .optimal, "s-maxage=3600", .get.cached),
    ]

    /// The origin hangs up, and nothing may stand in for it.
    private static let unanswered = ConformanceStep.get.disconnects.anyStatus.anyBody.misses("Server-Request-Count")
        .errorAllowed

    private static func lives(_ id: String, _ kind: Kind, _ values: [String], _ second: ConformanceStep) -> Self {
        Self(id, kind, .get.replies(values.map { .init("Cache-Control", .text($0)) }).pausing, second)
    }

    private static func authorization(_ id: String, _ kind: Kind, _ control: String, _ second: ConformanceStep) -> Self
    {
        Self(
            id, kind,
            .get.sends("Authorization: FOO").originSees("Authorization: FOO")
                .replies(.init("Cache-Control", .text(control)), .date("Date", 0)).pausing, second)
    }
}
