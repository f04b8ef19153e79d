import Foundation
import Testing

/// Every command has `--json`, and prints nothing else with it.
@Suite(.serialized) struct JSONTests {
    private let scratch: Scratch
    private let cache: String

    init() throws {
        scratch = try Scratch()
        cache = try scratch.demo(entries: 30)
    }

    private func json(_ arguments: String..., status: Int32 = 0) throws -> Any {
        let run = try Tool.run(arguments + ["--json"])
        #expect(run.status == status, "\(arguments): \(run.output.prefix(500))")
        return try JSONSerialization.jsonObject(with: Data(run.output.utf8), options: .fragmentsAllowed)
    }

    private func object(_ arguments: String..., status: Int32 = 0) throws -> [String: Any] {
        let run = try Tool.run(arguments + ["--json"])
        #expect(run.status == status, "\(arguments): \(run.output.prefix(500))")
        let value = try JSONSerialization.jsonObject(with: Data(run.output.utf8))
        return try #require(value as? [String: Any])
    }

    @Test func anEntryIsShownWithItsFields() throws {
        let entry = try #require((json("list", cache, "--limit", "1") as? [[String: Any]])?.first)
        let file = try #require(entry["file"] as? String)
        let shown = try #require((json("show", cache, file) as? [[String: Any]])?.first)
        #expect((shown["entry"] as? [String: Any])?["file"] as? String == file)
        #expect((shown["fields"] as? [[String: String]])?.contains { $0["name"] == "Content-Type" } == true)
        // Both variants of a URL.
        #expect((try json("show", cache, "item-14.") as? [Any])?.count == 2)
        expect(64, "--json shows no body", try Tool.run("show", cache, file, "--json", "--body"))
    }

    @Test func twoCachesAreCompared() throws {
        let copy = scratch.path("copy")
        try FileManager.default.copyItem(atPath: cache, toPath: copy)
        let removed = try #require(try object("remove", copy, "--host", "images.example.com")["removed"] as? Int)
        let difference = try object("diff", cache, copy)
        #expect((difference["added"] as? [Any])?.isEmpty == true && (difference["changed"] as? [Any])?.isEmpty == true)
        let changes = try #require(difference["removed"] as? [[String: Any]])
        #expect(changes.reduce(0) { $0 + (($1["before"] as? [Any])?.count ?? 0) } == removed && removed > 0)
    }

    @Test func anExplanationHasItsParagraphs() throws {
        let entry = try #require((json("list", cache, "--limit", "1") as? [[String: Any]])?.first)
        let url = try #require(entry["url"] as? String)
        let facts = try object("why", cache, url)
        #expect(facts["url"] as? String == url && facts["response"] == nil)
        let titles = (facts["explanation"] as? [[String: Any]] ?? []).compactMap { $0["title"] as? String }
        #expect(titles.count > 2 && !titles.contains(""))
    }

    @Test func eventsAreObjectsOnALineEach() throws {
        let run = try Tool.run("watch", cache, "--once", "--json")
        let events = try run.lines.map { try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
        #expect(events.count > 100 && events.allSatisfy { $0?["what"] is String && $0?["at"] is String })
    }

    @Test func filesAndRemovalsAreCounted() throws {
        #expect(try object("report", cache, "--html", scratch.path("page.html"))["entries"] as? Int == 30)
        #expect(try object("export", cache, "--har", scratch.path("all.har"))["entries"] as? Int == 30)
        #expect(try object("rebuild-index", cache)["records"] as? Int == 30)
        #expect(try object("trim", cache, "--to", "0")["removed"] as? Int == 30)
        let facts = try object("fill", scratch.path("new"), "http://127.0.0.1:1/", status: 1)
        #expect(facts["stored"] as? Int == 0)
        #expect((facts["failures"] as? [[String: Any]])?.first?["hasAnswer"] as? Bool == false)
    }
}
