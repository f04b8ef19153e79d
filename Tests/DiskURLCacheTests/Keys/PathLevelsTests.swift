import Testing

@testable import DiskURLCache

@Suite struct PathLevelsTests {
    /// What the levels exclude is never removed, so they must exclude nothing that begins with the prefix.
    @Test func noURLWithThePrefixIsExcluded() throws {
        var random = TestRandom(TestLength.fuzzSeed ?? 20)
        let pieces = ["a", "b", "api", "v1", "é", "%2F", "x.y", ".", "..", "", "?", "q=/", "/", "//"]
        var found = 0
        for _ in 0..<TestLength.fuzzIterations {
            let text = (0..<Int.random(in: 0...9, using: &random)).map { _ in
                pieces.randomElement(using: &random)! + (Bool.random(using: &random) ? "/" : "")
            }.joined()
            guard let url = URLCanonicalizer.canonical("http://a.example/" + text) else { continue }
            let length = Int.random(in: "http://a.example/".count...url.count, using: &random)
            guard let prefix = URLCanonicalizer.prefix(String(url.prefix(length)))?.text, url.hasPrefix(prefix)
            else { continue }
            found += 1
            #expect(PathLevels(url).mayBegin(with: PathLevels(ofNormal: prefix)), "\(url) \(prefix)")
        }
        #expect(found > TestLength.fuzzIterations / 2)
    }

    @Test func otherFoldersAreExcluded() {
        let prefix = PathLevels(ofNormal: "https://a.example/api/v1/users/")
        for url in ["/api/v1/items/1", "/api/v1/users", "/api/v2/users/1", "/", "/x", "/?/api/v1/users/"] {
            #expect(!PathLevels("https://a.example" + url).mayBegin(with: prefix), "\(url)")
        }
        let siblings = (0..<1_000).count { number in
            PathLevels("https://a.example/api/v1/\(number)/").mayBegin(with: prefix)
        }
        #expect(siblings < 20)
    }

    @Test(arguments: [nil, "data:,x", "cache:/api/"]) func nothingIsKnownOfOtherURLs(_ url: String?) {
        #expect(PathLevels(url).mayBegin(with: PathLevels(ofNormal: "https://a.example/api/")))
    }
}
