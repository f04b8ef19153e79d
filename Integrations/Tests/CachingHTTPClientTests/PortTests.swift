import Testing

@testable import CachingHTTPClient

/// `HTTPClient` ends the process at a port that cannot be, wherever in a URL there seems to be one, and at a host of
/// brackets alone.
@Suite struct PortTests {
    @Test(arguments: [
        "http://h/", "http://h", "http://h:/", "http://h:0/", "http://h:65535", "http://h:80?a=b:99999",
        "http://h#a:99999", "http://h/a:99999", "http://u:99999@h/", "http://u:p@h:80/", "http://[::1]/",
        "http://[::1]:80",
        "http://[fe80::99999]", "a", "a:99999", "",
    ]) func aPortThatMayBe(url: String) { #expect(url.hasPossibleServer) }

    @Test(arguments: [
        "http://h:65536", "http://h:99999/", "http://h:1x/", "http://h:-1/", "http://h: 80/", "http://h:1:2/",
        "http://u:p@h:70000/", "http://[::1]:99999/", "HTTPS://h:65536?a", "http://h:65536#a",
    ]) func aPortThatCannotBe(url: String) { #expect(!url.hasPossibleServer) }

    @Test(arguments: ["http://[::1]/", "http://%5Ba/", "http://a%5D:80/", "http://%61/", "http:///a", "http://%5B@h/"])
    func aHostThatMayBe(url: String) { #expect(url.hasPossibleServer) }

    @Test(arguments: [
        "http://%5B%5D/", "http://%5B:80/", "https://u@%5d", "http://[]/", "http://%5d?a", "http://u:p@%5B%5D:80/",
    ])
    func aHostThatCannotBe(url: String) { #expect(!url.hasPossibleServer) }
}
