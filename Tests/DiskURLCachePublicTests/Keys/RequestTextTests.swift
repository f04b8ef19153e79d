import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import Testing

/// A request that is made of a text, without Foundation.
@Suite struct RequestTextTests {
    /// Each letter, at each place where it may be.
    @Test(arguments: ["http://host.example/a\u{0}b", "http://host.example/a?\u{0}", "http://h\u{0}st.example/"])
    func itsURLIsWhatFoundationMakesOfIt(template: String) {
        for byte in UInt8(1)...0x7F {
            let text = template.replacingOccurrences(of: "\u{0}", with: String(UnicodeScalar(byte)))
            let url = DiskURLCache.Request(method: "GET", url: text)?.url
            #expect(url == URL(string: text)?.absoluteString, "byte \(byte)")
        }
    }
}
