import Foundation
import Testing

@testable import DiskURLCache

@Suite(.fewAtATime) struct URLCanonicalizerTests {
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
        ("http://u:P@Example.com/a", "http://example.com/a"),
        ("http://example.com./a", "http://example.com/a"),
        ("http://example.com:0080/a", "http://example.com/a"),
        ("http://example.com:08080/a", "http://example.com:8080/a"),
        ("http://[::1]:8080/A", "http://[::1]:8080/A"),
        ("http://[::1]:80/A", "http://[::1]/A"),
        ("http://[::FF:A00:5]/", "http://[::ff:a00:5]/"),
        ("http://ex%41mple.com/", "http://example.com/"),
    ]

    @Test(arguments: same) func normalForm(row: (text: String, normal: String)) {
        #expect(URLCanonicalizer.parts(of: row.text)?.url == row.normal)
        #expect(URLCanonicalizer.parts(of: row.normal)?.url == row.normal, "the normal form is its own normal form")
    }

    @Test func whatNoURLCanHoldIsEscaped() {
        let text = String(decoding: URLCanonicalizer.escaped("!~ \u{7f}\u{1}".utf8), as: UTF8.self)
        #expect(text == "!~%20%7F%01")
    }

    @Test(arguments: [
        "ftp://example.com/", "file:///etc/passwd", "data:,x", "/relative", "", "http:", "http://", "http:///a",
        "http://:80/", "http://./", "http://h../", "mailto:a@b",
    ])
    func othersHaveNone(text: String) {
        #expect(URLCanonicalizer.parts(of: text) == nil)
    }

    /// The quick look and the long way agree: what is called normal is its own normal form.
    @Test func normalFormsAreToldQuickly() {
        for row in Self.same where URLCanonicalizer.isNormal(row.text) { #expect(row.text == row.normal) }
        for text in [
            "http://example.com/", "https://a-b.example.com:8080/x/y.json?z=%41/../#".replacing("#", with: ""),
            "http://h/a%2Fb", "https://h/~user/a_b-c;d=1,2", "http://1.2.3.4:8443/?", "http://h//a",
        ] {
            #expect(URLCanonicalizer.isNormal(text), "\(text)")
            #expect(URLCanonicalizer.parts(of: text)?.url == text)
        }
        for text in [
            "http://H/", "http://h", "http://h?x", "http://h:80/", "https://h:443/", "http://h:/", "http://h:08/",
            "http://h/#", "http://h/?a#b", "http://h/./a", "http://h/a/..", "http://h/a/../b", "http://h/%2f",
            "http://h/%41", "http://h/%4", "http://h/%", "ftp://h/", "http:/h/", "http://", "httpx://h/",
            "http://h:8x/",
            "http://u@h/", "http://[::1]/", "http://h./", "",
        ] {
            #expect(!URLCanonicalizer.isNormal(text), "\(text)")
        }
    }

    @Test func whatIsCalledNormalIsItsOwnNormalForm() {
        let pieces = [
            "http://", "https://", "h", "H", "example.com", ":", "80", "443", "8080", "/", "//", ".", "..", "/.", "a",
            "%",
            "%2F", "%2f", "%41", "%7E", "?", "#", "@", "[", "]", "=", "&", "é", "-", "_",
        ]
        var generator = SystemRandomNumberGenerator()
        var normal = 0
        for _ in 0..<50_000 {
            var text = ["http://", "https://"].randomElement(using: &generator) ?? ""
            for _ in 0..<Int.random(in: 0...8, using: &generator) {
                text += pieces.randomElement(using: &generator) ?? ""
            }
            guard URLCanonicalizer.isNormal(text) else { continue }
            normal += 1
            #expect(URLCanonicalizer.parts(of: text)?.url == text)
        }
        #expect(normal > 100)
    }

    @Test(arguments: [
        ("http://example.com/", "example.com"), ("https://example.com:8080/a@b:c", "example.com"),
        ("http://[::1]:8080/", "[::1]"), ("http://h/?u@v", "h"), ("", ""), ("no url", ""),
    ]) func hostOfANormalForm(row: (url: String, host: String)) {
        #expect(URLCanonicalizer.host(ofNormal: row.url) == row.host)
    }

    @Test(arguments: [
        ("https://API.example.com/account", "https://api.example.com/account"),
        ("https://api.example.com:443/%61ccount", "https://api.example.com/account"),
        ("https://u@api.example.com./x/../account", "https://api.example.com/account"),
        ("https://api.example.com/a/.", "https://api.example.com/a/."),
        ("https://api.example.com", "https://api.example.com/"), ("https://h/a?b#c", "https://h/a?b"),
    ]) func theBeginningOfAURL(row: (text: String, prefix: String)) {
        #expect(URLCanonicalizer.prefix(row.text)?.text == row.prefix)
    }

    @Test(arguments: ["/account", "api.example.com", "ftp://h/", "https:///", "https://", "HTTPS:", "h", ""])
    func noBeginningOfAURL(text: String) {
        #expect(URLCanonicalizer.prefix(text) == nil)
    }

    @Test func hostileTextDoesNotTrap() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<TestLength.pick(plain: 5_000, long: 100_000) {
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
