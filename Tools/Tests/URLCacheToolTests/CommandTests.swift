import Foundation
import Testing

/// What the commands of `urlcache` print and do, on caches of made-up entries.
@Suite(.serialized) struct CommandTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test func readingTenThousandEntries() throws {
        let cache = try scratch.demo(entries: 10_000)
        expect(0, "^entries +10000", try Tool.run("stats", cache))
        expect(0, "\"entries\" : 10000", try Tool.run("stats", cache, "--json"))
        expect(0, "https://", try Tool.run("list", cache, "--sort", "size", "--limit", "3"))
        expect(
            0, "\"url\" : \"https://www.example.com/",
            try Tool.run("list", cache, "--host", "www.example.com", "--limit", "1", "--json"))
        expect(0, "Content-Type", try Tool.run("show", cache, "item-9997."))
        expect(0, "^2 variants of", try Tool.run("show", cache, "item-9998."))
        expect(1, "^Error: 2 variants are stored", try Tool.run("show", cache, "item-9998.", "--body"))
        expect(1, "match", try Tool.run("show", cache, "item-99"))
        expect(0, "10000 of 10000 records are intact", try Tool.run("verify", cache))
        expect(0, "stored", try Tool.run("watch", cache, "--once"))
        let archive = scratch.path("all.har")
        expect(0, "^10000 entries", try Tool.run("export", cache, "--har", archive, "--headers-only"))
        #expect(try Scratch.mode(of: archive) == 0o600, "a file of the tool is for its user alone")
        let page = scratch.path("report.html")
        expect(0, "^10000 entries", try Tool.run("report", cache, "--html", page))
        #expect(try Data(contentsOf: URL(fileURLWithPath: page)).count < 2_000_000)
    }

    /// An archive has texts; the cache has the bytes that their charset gives.
    @Test func aBodyThatWasExportedIsImportedAsItWas() throws {
        func entry(_ path: String, _ type: String, _ content: String) -> String {
            """
            {"request": {"method": "GET", "url": "https://example.com/\(path)", "headers": []},
            "response": {"status": 200, "headers": [{"name": "Content-Type", "value": "\(type)"},
            {"name": "Cache-Control", "value": "max-age=3600"}], "content": \(content)}}
            """
        }
        let marked = Data("\u{FEFF}text".utf8)
        let entries = [
            entry("latin", "text/html; charset=iso-8859-1", #"{"text": "\u00e9"}"#),
            entry("plain", "text/html", #"{"text": "\u00e9"}"#),
            entry("marked", "text/csv", #"{"text": "\#(marked.base64EncodedString())", "encoding": "base64"}"#),
            entry("unknown", "text/html; charset=koi8-r", #"{"text": "\u00e9"}"#),
            entry("not-in-it", "text/html; charset=us-ascii", #"{"text": "\u00e9"}"#),
        ]
        let (archive, again) = (scratch.path("archive.har"), scratch.path("again.har"))
        try Data("{\"log\": {\"entries\": [\(entries.joined(separator: ","))]}}".utf8)
            .write(to: URL(fileURLWithPath: archive))
        let (first, second) = (scratch.path("first"), scratch.path("second"))
        expect(0, "^3 of 5 are in", try Tool.run("import", archive, first))
        expect(0, "^3 entries in", try Tool.run("export", first, "--har", again))
        // Standard output has the file, and nothing else.
        let printed = try Tool.run("export", first, "--har", "/dev/stdout").output
        #expect(try JSONSerialization.jsonObject(with: Data(printed.utf8)) is [String: Any])
        expect(0, "^3 of 3 are in", try Tool.run("import", again, second))
        for cache in [first, second] {
            for (path, body) in [("/latin", Data([0xE9])), ("/plain", Data([0xC3, 0xA9])), ("/marked", marked)] {
                let file = scratch.path("body")
                try Data().write(to: URL(fileURLWithPath: file))
                #expect(try Tool.run("show", cache, path, "--body", output: file).status == 0)
                #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == body, "\(path)")
            }
        }
    }

    @Test func aFileIsNotWrittenThroughALink() throws {
        let cache = try scratch.demo(entries: 30)
        let target = scratch.path("target")
        try Data("target".utf8).write(to: URL(fileURLWithPath: target))
        try FileManager.default.createSymbolicLink(atPath: scratch.path("link"), withDestinationPath: target)
        try FileManager.default.linkItem(atPath: target, toPath: scratch.path("second"))
        expect(1, "symbolic link", try Tool.run("export", cache, "--har", scratch.path("link")))
        expect(1, "second name", try Tool.run("export", cache, "--har", scratch.path("second")))
        #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == Data("target".utf8))
    }

    @Test func damageIsFoundAndLeftWhereItIs() throws {
        let cache = try scratch.demo(entries: 300)
        let large = try scratch.files(in: cache + "/records").first {
            try Data(contentsOf: $0).count > 8_192
        }
        let record = try #require(large)
        let file = try FileHandle(forWritingTo: record)
        try file.seek(toOffset: 5_000)
        try file.write(contentsOf: Data("x".utf8))
        try file.close()
        expect(1, "^damaged +records/\(record.lastPathComponent)", try Tool.run("verify", cache))
        let archive = scratch.path("damaged.har")
        expect(
            1, "^Error: 1 bodies cannot be read, such as that of \(record.lastPathComponent)",
            try Tool.run("export", cache, "--har", archive))
        expect(0, "^300 entries", try Tool.run("export", cache, "--har", archive, "--headers-only"))
        #expect(FileManager.default.fileExists(atPath: record.path), "verify removes nothing")
        expect(0, "^Removed 1 entries", try Tool.run("remove", cache, "--damaged"))
        let torn = try #require(try scratch.files(in: cache + "/records").first)
        try Data("torn".utf8).write(to: torn)
        expect(
            1, "records/\(torn.lastPathComponent) cannot be read", try Tool.run("show", cache, torn.lastPathComponent))
        expect(0, "^Removed 1 entries", try Tool.run("remove", cache, "--damaged"))
        try Data("garbage".utf8).write(to: URL(fileURLWithPath: cache + "/index.plist"))
        expect(0, "^The index is damaged, or of another version", try Tool.run("verify", cache))
        expect(0, "^The new index holds", try Tool.run("rebuild-index", cache))
        expect(0, "^The index is valid", try Tool.run("verify", cache))
        try FileManager.default.removeItem(atPath: cache + "/index.plist")
        expect(0, "^index +not saved yet: the next opening makes it", try Tool.run("stats", cache))
    }

    @Test func removingComparingAndTrimming() throws {
        let cache = try scratch.demo(entries: 1_000)
        expect(
            0, "would be removed", try Tool.run("remove", cache, "--host", "www.example.com", "--dry-run"))
        let copy = scratch.path("copy")
        try FileManager.default.copyItem(atPath: cache, toPath: copy)
        expect(0, "^0 added, 0 removed, 0 changed", try Tool.run("diff", cache, copy))
        expect(0, "^Removed [0-9]+ entries", try Tool.run("remove", copy, "--host", "fonts.example.net"))
        expect(0, "^- https://fonts.example.net/", try Tool.run("diff", cache, copy))
        expect(0, "^0 added, [1-9][0-9]+ removed, 0 changed", try Tool.run("diff", cache, copy))
        expect(0, "takes [0-9.]+ MB", try Tool.run("trim", cache, "--to", "4MB"))
        let sizes = try scratch.files(in: cache + "/records").map { try Data(contentsOf: $0).count }
        #expect(!sizes.isEmpty && sizes.reduce(0, +) <= 4 << 20)
        expect(0, "^Removed .* 0 are left", try Tool.run("trim", cache, "--to", "0"))
        expect(0, "^0 entries", try Tool.run("report", cache, "--html", scratch.path("empty.html")))
    }

    @Test func aTrimRemovesWhatItsDryRunLists() throws {
        let cache = try scratch.demo(entries: 300)
        expect(0, "^[1-9][0-9]+ entries would be removed", try Tool.run("trim", cache, "--to", "1MB", "--dry-run"))
        func files(_ run: Tool.Run) -> [Substring] { run.lines.filter { $0.contains("\"file\" :") } }
        let planned = files(try Tool.run("trim", cache, "--to", "1MB", "--dry-run", "--json"))
        let before = files(try Tool.run("list", cache, "--json"))
        expect(0, "^Removed \(planned.count) entries", try Tool.run("trim", cache, "--to", "1MB"))
        let after = files(try Tool.run("list", cache, "--json"))
        #expect(Set(after) == Set(before).subtracting(planned))
        expect(0, "\"left\" : 0", try Tool.run("trim", cache, "--to", "0", "--json"))
    }

    /// Rules of the app give responses a lifetime that they do not have by themselves.
    @Test func theReportJudgesFreshnessByRules() throws {
        let cache = try scratch.demo(entries: 60)
        let rules = scratch.path("rules.json")
        try Data(#"[{"lifetime": 1e9}]"#.utf8).write(to: URL(fileURLWithPath: rules))
        func page(_ arguments: String...) throws -> String {
            let file = scratch.path("page.html")
            expect(0, "^60 entries", try Tool.run(["report", cache, "--html", file] + arguments))
            return try String(contentsOfFile: file, encoding: .utf8)
        }
        // Errors keep their own lifetime.
        func stale(_ page: String) -> Int? {
            page.range(of: "\"stale\":[0-9]+", options: .regularExpression).flatMap { Int(page[$0].dropFirst(8)) }
        }
        let (plain, ruled) = (try page(), try page("--rules", rules))
        #expect(try #require(stale(ruled)) < #require(stale(plain)))
        #expect(ruled.contains("\"rules\":\"\(rules)\"") && !plain.contains("\"rules\":"))
    }

    @Test func groupsAreCountedByHostTypeTagAndPath() throws {
        let cache = try scratch.demo(entries: 300)
        expect(0, "^ +[1-9][0-9]* +.*www.example.com$", try Tool.run("stats", cache, "--by", "host"))
        expect(0, "image/jpeg$", try Tool.run("stats", cache, "--by", "type"))
        expect(0, "^entries +bytes +on disk +tag$", try Tool.run("stats", cache, "--by", "tag"))
        expect(0, "www.example.com/[a-z]", try Tool.run("stats", cache, "--by", "path"))
        expect(0, "\"name\" : \"www.example.com\"", try Tool.run("stats", cache, "--by", "host", "--json"))
    }

    @Test func entriesAreChosenByTheDayOfTheirStorage() throws {
        let cache = try scratch.demo(entries: 30)
        let all = try Tool.run("list", cache)
        #expect(try Tool.run("list", cache, "--stored-before", "2100-01-01").lines.count == all.lines.count)
        #expect(try Tool.run("list", cache, "--stored-before", "2001-01-01T12:00:00Z").lines.count == 1)
        expect(64, "stored-before", try Tool.run("list", cache, "--stored-before", "yesterday"))
    }

    @Test func theOnlyCacheOfTheUserIsTheDefault() throws {
        let home = scratch.path("caches")
        let environment = URL(fileURLWithPath: "/usr/bin/env")
        func stats() throws -> Tool.Run {
            try Tool.run("XDG_CACHE_HOME=\(home)", "CACHE_DIRECTORY=", Tool.program.path, "stats", program: environment)
        }
        expect(64, "there is no cache in", try stats())
        expect(0, "", try Tool.run("demo", home + "/DiskURLCache/One", "--entries", "10"))
        expect(0, "^entries +10:", try stats())
        expect(0, "^The cache is .*/caches/DiskURLCache/One\\.$", try stats())
        expect(0, "", try Tool.run("demo", home + "/DiskURLCache/Two", "--entries", "10"))
        expect(64, "DiskURLCache/Two$", try stats())
    }

    @Test func theVersionIsPrinted() throws {
        expect(0, "^[0-9]+\\.[0-9]+\\.[0-9]+$", try Tool.run("--version"))
    }

    @Test func mistakesAreToldAndChangeNothing() throws {
        let cache = try scratch.demo(entries: 30)
        expect(64, "filter", try Tool.run("remove", cache))
        expect(64, "--all means every entry", try Tool.run("remove", cache, "--all", "--host", "www.example.com"))
        expect(1, "nothing at", try Tool.run("list", scratch.path("missing")))
        let other = scratch.folder.path
        expect(1, "not a cache", try Tool.run("list", other))
        expect(1, "is not a cache.*Nothing was written", try Tool.run("fill", other, "http://127.0.0.1:1/"))
        #expect(!FileManager.default.fileExists(atPath: other + "/records"))
        expect(1, "cannot be written", try Tool.run("report", cache, "--html", scratch.path("missing/report.html")))
        expect(0, "^entries +30", try Tool.run("stats", cache))
    }

    #if os(Linux)
        @Test func aFullDiskIsAnError() throws {
            let run = try Tool.run("list", try scratch.demo(entries: 30), output: "/dev/full")
            #expect(run.status != 0)
            expect(run.status, "Standard output cannot be written", run)
        }
    #endif

    /// `urlcache list | head`
    @Test func aPipeWithoutAReaderEndsACommandWithoutAWord() throws {
        let cache = try scratch.demo(entries: 3_000)
        let command = "{ '\(Tool.program.path)' list '\(cache)'; echo status $? >&2; } | true"
        let run = try Tool.run("-c", command, program: URL(fileURLWithPath: "/bin/sh"))
        #expect(run.output == "status 141\n")
    }

    @Test func whyWithSettingsReadsTheDirectoryToo() throws {
        let cache = try scratch.demo(entries: 30)
        let listed = try Tool.run("list", cache, "--limit", "1", "--json").output
        let url = try #require(listed.range(of: "https://[^\"]*", options: .regularExpression))
        let rules = scratch.path("rules.json")
        try Data(#"[{"path": "/none", "storage": "never"}]"#.utf8).write(to: URL(fileURLWithPath: rules))
        let why = try Tool.run("why", cache, String(listed[url]), "--rules", rules)
        expect(0, "^  (The response|Variant 1): .* ago, from disk", why)
    }

    @Test func whyTellsWhatIsStoredAndWhatIsNot() throws {
        let cache = try scratch.demo(entries: 30)
        expect(0, "Nothing is stored under this key", try Tool.run("why", cache, "https://example.com/unknown"))
        let listed = try Tool.run("list", cache, "--limit", "1", "--json").output
        let url = try #require(listed.range(of: "https://[^\"]*", options: .regularExpression))
        expect(
            0, "Lifetime: [0-9]+ s.*RFC 9111",
            try Tool.run("why", cache, String(listed[url]), "--header", "Accept-Language: en"))
    }

    /// A number that no event has is passed over, and no sum of others overflows.
    @Test(arguments: [Int.max, 1 << 50, 1 << 40]) func aLogWithOddNumbersIsReported(bytes: Int) throws {
        let cache = try scratch.demo(entries: 30, withLoads: false)
        let line = """
            {"at":1790000000,"event":{"load":{"_0":{"url":"https://example.com/a","method":"GET","outcome":{"hit":{"_0":\
            "memory"}},"status":200,"bytes":\(bytes),"duration":0.1,"startedAt":1790000000,"isCollapsed":false,\
            "cacheStatus":""}}}}

            """
        let lines = String(repeating: line, count: 8_200)
        try Data(lines.utf8).write(to: URL(fileURLWithPath: cache + "/events.jsonl"))
        expect(0, "^30 entries", try Tool.run("report", cache, "--html", scratch.path("few.html")))
        expect(0, bytes == 1 << 40 ? "8200" : "30", try Tool.run("stats", cache))
        expect(bytes == 1 << 40 ? 0 : 1, "", try Tool.run("top", cache, "--once"))
    }

    @Test func argumentsThatAreNoneAreTold() throws {
        let cache = try scratch.demo(entries: 30)
        expect(64, "no header field", try Tool.run("why", cache, "https://example.com/", "--header", ":"))
        expect(64, "no header field", try Tool.run("why", cache, "https://example.com/", "--header", ": x"))
        expect(64, "", try Tool.run("top", cache, "--once", "--last", "1e308d"))
        try Data().write(to: URL(fileURLWithPath: cache + "/events.jsonl"))
        expect(1, "has no event yet", try Tool.run("watch", cache, "--once"))
        expect(1, "There is no event log at", try Tool.run("watch", cache, "--once", "--log", scratch.path("none")))
    }

    /// Of several responses of a URL the last one may not be stored.
    @Test func whatIsNotThereAtTheEndIsNotImported() throws {
        func entry(_ path: String, _ control: String, status: Int = 200) -> String {
            """
            {"request": {"method": "GET", "url": "https://ada:SECRET@example.com/\(path)", "headers": []},
            "response": {"status": \(status), "headers": [{"name": "Cache-Control", "value": "\(control)"}],
            "content": {"text": "a"}}}
            """
        }
        let entries = [entry("a", "max-age=60"), entry("a", "no-store"), entry("b", "no-store")]
        let archive = scratch.path("archive.har")
        try Data("{\"log\": {\"entries\": [\(entries.joined(separator: ","))]}}".utf8)
            .write(to: URL(fileURLWithPath: archive))
        let run = try Tool.run("import", archive, scratch.path("cache"))
        expect(1, "^0 of 3 are in", run)
        #expect(!run.output.contains("SECRET") && run.output.contains("example.com/b"))
    }

    #if os(Linux)
        static let canBeNobody = getuid() == 0 && FileManager.default.isExecutableFile(atPath: "/usr/bin/setpriv")

        @Test(.enabled(if: canBeNobody, "needs root and setpriv"))
        func aUserWhoMayNotWriteIsTold() throws {
            let cache = try scratch.demo(entries: 30)
            // The build may lie in a folder that only its owner reads.
            let program = scratch.path("urlcache")
            try FileManager.default.copyItem(atPath: Tool.program.path, toPath: program)
            let script = URL(fileURLWithPath: scratch.path("as-nobody"))
            try Data("#!/bin/sh\nexec setpriv --reuid=65534 --clear-groups '\(program)' \"$@\"\n".utf8).write(
                to: script)
            for path in [scratch.folder.path, script.path] { chmod(path, 0o755) }
            for file in FileManager.default.enumerator(atPath: cache)?.allObjects as? [String] ?? [] {
                let path = cache + "/" + file
                let isFolder = URL(fileURLWithPath: path).hasDirectoryPath
                chmod(path, isFolder ? 0o755 : 0o644)
            }
            chmod(cache, 0o755)
            let denied = "cannot be written: Permission denied"
            expect(1, denied, try Tool.run("rebuild-index", cache, program: script))
            expect(1, denied, try Tool.run("trim", cache, "--to", "1KB", program: script))
            expect(1, denied, try Tool.run("remove", cache, "--all", program: script))
            expect(1, denied, try Tool.run("fill", cache, "http://127.0.0.1:1/", program: script))
        }

        /// An origin cannot write to the terminal by a field of its response.
        @Test func controlCharactersAreNotPrinted() throws {
            let origin = try Origin()
            let cache = scratch.path("hostile")
            expect(0, "^1 of 1", try Tool.run("fill", cache, origin.url + "/turned"))
            expect(1, "^not stored", try Tool.run("fill", cache, origin.url + "/escape"))
            #expect(try Scratch.mode(of: cache + "/records") == 0o700)
            expect(0, "^1 of 1", try Tool.run("fill", cache, origin.url + "/turned", "--readable"))
            for file in try scratch.files(in: cache + "/records") {
                #expect((try Scratch.mode(of: file.path) ?? 0) & 0o444 == 0o444)
            }
            expect(0, "^Only user", try Tool.run("fill", cache, origin.url + "/turned"))
            for file in try scratch.files(in: cache + "/records") {
                #expect(try Scratch.mode(of: file.path) == 0o600)
            }
            #expect(try Scratch.mode(of: cache) == 0o700)
            let named = origin.url.replacingOccurrences(of: "http://", with: "http://ada:SECRET@")
            let refused = try Tool.run("fill", cache, named + "/escape")
            expect(1, "^not stored", refused)
            #expect(!refused.output.contains("SECRET"))
            // Also what a program's event log says: an outcome's layer, a reason.
            let bad = "text/x\\u001b[2J\\u202e\\n"
            let load = """
                {"url":"\(origin.url)/x","method":"GET","outcome":{"staleHit":{"_0":"\(bad)","because":{"code":"x",\
                "words":"\(bad)"}}},"notStoredReason":{"code":"x","words":"\(bad)","advice":"\(bad)"},"status":200,\
                "bytes":1,"duration":0.1,"startedAt":1790000000,"isCollapsed":false,"cacheStatus":""}
                """
            try Data("{\"at\":1790000000,\"event\":{\"load\":{\"_0\":\(load)}}}\n".utf8)
                .write(to: URL(fileURLWithPath: cache + "/events.jsonl"))
            let runs = [
                ["list"], ["list", "--json"], ["stats"], ["stats", "--json"], ["show", "/turned"], ["watch", "--once"],
                ["watch", "--once", "--json"], ["top", "--once", "--by", "outcome"], ["why", origin.url + "/x"],
            ]
            for arguments in runs {
                let run = try Tool.run([arguments[0], cache] + arguments.dropFirst())
                expect(0, "text/x", run)
                let controls = run.output.unicodeScalars.filter {
                    $0 != "\n" && $0 != "\t"
                        && ($0.properties.generalCategory == .control || $0.properties.generalCategory == .format)
                }
                #expect(controls.isEmpty, "\(run.output)")
                // Lines of JSON are the tool's own.
                if arguments.contains("--json") { continue }
                #expect(
                    !run.output.contains("\n]") && !run.output.contains("\n)"), "a line of an origin: \(run.output)")
            }
        }
    #endif
}
