import Foundation
import Testing

@testable import DiskURLCache

@Suite struct RowFilterTests {
    /// A record that the filter excludes is not read, so it must exclude none that meets the conditions.
    @Test func noRecordThatMeetsTheConditionsIsExcluded() throws {
        var random = TestRandom(TestLength.fuzzSeed ?? 30)
        let status = try SystemFiles().status(at: "/")
        let start = Date(timeIntervalSince1970: 1_790_000_000)
        let hosts = ["a.example", "b.example:8080", "[::1]"]
        let paths = ["", "/", "/a", "/a/", "/a/b/c", "/a/b/d/e/f/g", "/%2F/x?q=/a/", "/a/%62/c", "/é/x", "/a/../b/c"]
        func url() -> String {
            "https://" + hosts.randomElement(using: &random)! + paths.randomElement(using: &random)!
        }
        var met = 0
        for _ in 0..<TestLength.fuzzIterations {
            let text = url()
            let uri = try #require(URLCanonicalizer.canonical(text))
            let tags = ["x", "y"].filter { _ in Bool.random(using: &random) }
            let storedAt = start + Double.random(in: 0...4, using: &random)
            let keepsURL = Int.random(in: 0..<4, using: &random) > 0
            var metadata = StoredEntry.test(Data(), storedAt: storedAt, tags: tags, url: text).metadata
            let key = RequestKey(text: uri, uri: uri, isForHead: false).diskKey(ofRecordWith: keepsURL ? text : nil)
            let record = try #require(PreparedRecord(metadata, bodyOf: (0, 0), for: key, keepsURL: keepsURL))
            if !keepsURL { metadata.url = nil }
            var criteria = EntryCriteria.everything
            if Bool.random(using: &random) {
                let whole = url()
                let length = Int.random(in: 5...whole.count, using: &random)
                guard let prefix = URLCanonicalizer.prefix(String(whole.prefix(length))) else { continue }
                criteria.urlPrefix = prefix.text
                criteria.host = HostName(prefix.host)
            }
            if Bool.random(using: &random) { criteria.tags = ["y", "z"] }
            if Bool.random(using: &random) { criteria.storedAfter = start + Double.random(in: 0...4, using: &random) }
            if Bool.random(using: &random) { criteria.storedBefore = start + Double.random(in: 0...4, using: &random) }
            guard criteria.matches(key, metadata) else { continue }
            met += 1
            let row = IndexRow(record.footer, status, accessedAt: 0)
            #expect(RowFilter(criteria).mayMatch(row), "\(text) \(criteria)")
        }
        #expect(met > TestLength.fuzzIterations / 20)
    }
}
