import Foundation
import Testing

@testable import DiskURLCache

@Suite struct URLCanonicalizerTests {
    static let same: [(text: String, normal: String)] = [
        ("http://example.com", "http://example.com/"),
        ("HTTP://EXAMPLE.com/", "http://example.com/"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("https://example.com:80/a", "https://example.com:80/a"),
        ("http://example.com:/a", "http://example.com/a"),
        ("http://example.com/a#top", "http://example.com/a"),
        ("http://example.com#top", "http://example.com/"),
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/a/b/..", "http://example.com/a/"),
        ("http://example.com/../../a", "http://example.com/a"),
        ("http://example.com/%2e%2E/a", "http://example.com/a"),
        ("http://example.com/%7euser/%41", "http://example.com/~user/A"),
        ("http://example.com/a%2fb", "http://example.com/a%2Fb"),
        ("http://example.com/a%zz%4", "http://example.com/a%zz%4"),
        ("http://example.com/a?b=%41&a=%2f", "http://example.com/a?b=%41&a=%2f"),
        ("http://example.com?x", "http://example.com/?x"),
        ("http://example.com/a?", "http://example.com/a?"),
        ("http://example.com/a?x#y?z", "http://example.com/a?x"),
        ("http://example.com/a//b", "http://example.com/a//b"),
        ("http://u:P@Example.com/a", "http://u:P@example.com/a"),
        ("http://[::1]:8080/A", "http://[::1]:8080/A"),
        ("http://[::1]:80/A", "http://[::1]/A"),
        ("http://ex%41mple.com/", "http://example.com/"),
    ]

    @Test(arguments: same) func normalForm(row: (text: String, normal: String)) {
        #expect(URLCanonicalizer.parts(of: row.text)?.url == row.normal)
        #expect(URLCanonicalizer.parts(of: row.normal)?.url == row.normal, "the normal form is its own normal form")
    }

    @Test(arguments: [
        "ftp://example.com/", "file:///etc/passwd", "data:,x", "/relative", "", "http:", "http://", "http:///a",
        "http://:80/", "mailto:a@b",
    ])
    func othersHaveNone(text: String) {
        #expect(URLCanonicalizer.parts(of: text) == nil)
    }

    @Test func hostileTextDoesNotTrap() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let count = Int.random(in: 0..<30, using: &random)
            let tail = (0..<count).map { _ in "/.:?#%@[]2eEaZ\u{0}é".randomElement(using: &random)! }
            let text = "http://h" + String(tail)
            if let normal = URLCanonicalizer.parts(of: text)?.url {
                #expect(URLCanonicalizer.parts(of: normal)?.url == normal, "\(text.debugDescription)")
            }
        }
        #expect(URLCanonicalizer.parts(of: "http://h/" + String(repeating: "../a/", count: 20_000)) != nil)
    }
}

extension URLCanonicalizer.Parts: Equatable {
    public static func == (left: Self, right: Self) -> Bool { left.url == right.url }
}
