import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite struct RequestTests {
    private static var original: URLRequest {
        var request = URLRequest(url: URL(string: "https://a.example/1?q=1")!, timeoutInterval: 7)
        request.httpMethod = "POST"
        request.httpBody = Data("body".utf8)
        request.setValue("1", forHTTPHeaderField: "A")
        request.setValue("2", forHTTPHeaderField: "B")
        request.httpShouldHandleCookies = false
        request.cachePolicy = .returnCacheDataElseLoad
        return request
    }

    @Test func aRequestThatIsNotChangedIsTheOriginal() {
        #expect(DiskURLCache.Request(Self.original).urlRequest == Self.original)
    }

    @Test func changesReachTheURLRequest() {
        var request = DiskURLCache.Request(Self.original)
        request.method = "GET"
        request.url = "https://a.example/2"
        request.dropBody()
        request.headerFields.remove("a")
        request.headerFields.set("C", "3")
        var expected = Self.original
        expected.httpMethod = "GET"
        expected.url = URL(string: "https://a.example/2")
        expected.httpBody = nil
        expected.allHTTPHeaderFields = ["B": "2", "C": "3"]
        let changed = request.urlRequest
        #expect(changed == expected)
        #expect(changed.httpMethod == "GET" && changed.url == expected.url && changed.httpBody == nil)
        #expect(changed.allHTTPHeaderFields == ["B": "2", "C": "3"])
        // What this type does not have stays as it was.
        #expect(changed.cachePolicy == .returnCacheDataElseLoad && !changed.httpShouldHandleCookies)
        #expect(changed.timeoutInterval == 7 && request.foundationURL == expected.url)
    }

    @Test func aChangedCopyLeavesTheOtherOneAsItWas() {
        let request = DiskURLCache.Request(Self.original)
        var copy = request
        copy.url = "https://b.example/"
        copy.body = Data("other".utf8)
        #expect(request.url == "https://a.example/1?q=1" && request.body == Data("body".utf8))
        #expect(request.urlRequest == Self.original)
        #expect(copy.method == "POST" && copy.urlRequest.httpBody == Data("other".utf8))
    }

    /// The body of such a request is not read: the method alone may change.
    @Test func aStreamStaysWithTheRequest() {
        var original = Self.original
        original.httpBodyStream = InputStream(data: Data("stream".utf8))
        var request = DiskURLCache.Request(original)
        #expect(request.hasBodyStream && request.body == nil)
        request.headerFields.set("C", "3")
        #expect(request.urlRequest.httpBodyStream != nil)
        request.dropBody()
        #expect(!request.hasBodyStream && request.urlRequest.httpBodyStream == nil)
    }
}
