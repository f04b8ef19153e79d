#if os(Linux)
    import Foundation
    import Testing

    /// What each command that README and the articles name says in its commonest case: its answer, not its status.
    @Suite(.serialized) struct AnswerTests {
        private let scratch: Scratch
        private let origin: Origin
        private let cache: String

        /// A cache with two responses of a local origin, and a log of a program that loaded `/none` and `/kept`.
        init() throws {
            scratch = try Scratch()
            origin = try Origin()
            cache = scratch.path("cache")
            let urls = ["/kept", "/signed?item=1&signature=a"].map { [origin] in origin.url + $0 }
            expect(0, "^2 of 2 are in", try Tool.run(["fill", cache] + urls))
            let reason = #"{"code":"no-store","words":"the response says no-store","advice":"Ask the origin."}"#
            let missing = #"{"miss":{"_0":{"code":"not-in-cache","words":"not in the cache"}}}"#
            let hit = #"{"hit":{"_0":"disk"}}"#
            let loads = [("/none", missing), ("/none", missing), ("/kept", hit), ("/kept", hit)]
            let lines = loads.enumerated().map { [origin] number, load in
                """
                {"at":\(1_790_000_000 + number),"event":{"load":{"_0":{"url":"\(origin.url)\(load.0)","method":"GET",\
                "outcome":\(load.1),"status":200,"bytes":1000,"duration":0.1,"startedAt":1790000000,"isCollapsed":false,\
                \(load.0 == "/none" ? "\"notStoredReason\":\(reason)," : "")"cacheStatus":""}}}}

                """
            }
            try Data(lines.joined().utf8).write(to: URL(fileURLWithPath: cache + "/events.jsonl"))
            try Data(#"[{"path": "/ruled", "storage": "never"}]"#.utf8)
                .write(to: URL(fileURLWithPath: scratch.path("rules.json")))
        }

        /// CACHE, ORIGIN and SCRATCH stand for what the test has made; the sentence is a pattern.
        private static let answers: [(command: String, sentence: String)] = [
            // README, "Why was this not cached?"
            ("why ORIGIN/new", "Cache-Control: max-age=3600\\) is stored\\.  \\[RFC 9111 §3\\]$"),
            ("why ORIGIN/new --shared", "\\) is stored\\."),
            ("why ORIGIN/new --json", "\\) is stored\\."),
            ("why ORIGIN/new", "Lifetime: 3600 s, from Cache-Control: max-age=3600"),
            ("why ORIGIN/none", "is not stored: the response says no-store"),
            ("why ORIGIN/ruled --rules SCRATCH/rules.json", "Why: rule 0 \\(path /ruled\\) says storage: .never"),
            ("why ORIGIN/new --rules SCRATCH/rules.json", "\\) is stored\\."),
            ("why ORIGIN/new --method POST --body text", "A key policy gives a POST a key"),
            ("why CACHE ORIGIN/kept", "Answers from the store: it is fresh"),
            ("why CACHE ORIGIN/kept --load", "is stored and replaces the stored one|is the stored one"),
            ("why CACHE ORIGIN/new", "Nothing is stored under this key"),
            ("why CACHE ORIGIN/new", "The event log has no load of this URL: perhaps a session .* not attached"),
            ("why CACHE ORIGIN/none", "not stored: the response says no-store"),
            ("why CACHE ORIGIN/none", "^  Ask the origin\\.$"),
            ("why CACHE ORIGIN/signed?item=1&signature=b", "One response .* only in the query item signature\\."),
            ("why CACHE ORIGIN/signed?item=1&signature=b", "\\.standard\\.droppingQueryItems\\(\"signature\"\\)"),
            // "Looking into a cache"
            ("stats CACHE", "^entries +2: 2 fresh, 0 stale"),
            ("stats CACHE", "^loads +4 in the log: 50.0 % from the cache"),
            ("stats CACHE --by host", "^ +2 +10 B +.*127.0.0.1$"),
            ("diff CACHE CACHE", "^0 added, 0 removed, 0 changed, 2 the same\\.$"),
            ("list CACHE --sort size --limit 1", "^200 +text/plain +5 B .* ORIGIN/"),
            ("show CACHE /kept", "^fresh +until"), ("show CACHE /kept --body", "^hello$"),
            ("verify CACHE", "^2 of 2 records are intact, 10 B"),
            ("verify CACHE", "^The index is valid\\.$"),
            ("report CACHE --html SCRATCH/page.html", "^2 entries in .*/page.html"),
            ("export CACHE --har SCRATCH/all.har", "^2 entries in .*/all.har"),
            ("watch CACHE --once", "miss .* ORIGIN/none  \\[not in the cache\\]$"),
            ("top CACHE --once", "^loads 4 .* hits 50.0 %"),
            ("simulate CACHE --capacity 20MB", "^ +20 MB  by use +25.0 %"),
            ("trim CACHE --to 50MB", "^Removed 0 entries; 2 are left\\."),
            ("trim CACHE --to 0 --dry-run", "^2 entries would be removed\\."),
            ("remove CACHE --host 127.0.0.1 --dry-run", "^2 entries would be removed\\."),
            ("remove CACHE --stored-before 2026-01-01", "^Removed 0 entries\\."),
            ("rebuild-index CACHE", "^The new index holds 2 records\\."),
            ("fill SCRATCH/new ORIGIN/new", "^1 of 1 are in"),
            ("import SCRATCH/all.har SCRATCH/imported", "^2 of 2 are in"),
            ("list SCRATCH/imported --sort url", "^200 +text/plain +5 B .* ORIGIN/kept$"),
            ("show SCRATCH/imported /kept --body", "^hello$"), ("trim CACHE --to 0", "^Removed 2 entries; 0 are left"),
        ]

        @Test func eachCommandGivesItsCommonestAnswer() throws {
            func filled(_ text: String) -> String {
                text.replacingOccurrences(of: "CACHE", with: cache).replacingOccurrences(of: "ORIGIN", with: origin.url)
                    .replacingOccurrences(of: "SCRATCH", with: scratch.folder.path)
            }
            for (command, sentence) in Self.answers {
                expect(0, filled(sentence), try Tool.run(command.split(separator: " ").map { filled(String($0)) }))
            }
            let page = try String(contentsOfFile: scratch.path("page.html"), encoding: .utf8)
            #expect(page.contains(#""reason":"not stored: the response says no-store""#), "the page says why")
        }
    }
#endif
