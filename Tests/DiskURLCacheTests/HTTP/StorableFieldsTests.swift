import Foundation
import Testing

@testable import DiskURLCache

@Suite(.fewAtATime) struct StorableFieldsTests {
    /// cache-tests `headers-store-*`: fields that must not be stored.
    @Test(arguments: [
        "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
        "Proxy-Connection", "TE", "Transfer-Encoding", "Upgrade", "Trailer", "Set-Cookie", "set-cookie",
        "Clear-Site-Data",
    ])
    func fieldIsNotStored(_ name: String) {
        #expect(StorableFields.filtered(["A": "1", name: "x"]) == ["A": "1"])
    }

    /// They concern one user, or one exchange.
    @Test(arguments: ["Set-Cookie2", "Authentication-Info"])
    func fieldIsNotStoredInASharedCache(_ name: String) {
        #expect(StorableFields.filtered(["A": "1", name: "x"]) == ["A": "1", name: "x"])
        #expect(StorableFields.filtered(["A": "1", name: "x"], isShared: true) == ["A": "1"])
    }

    /// Some readers take such a character for white space, others for a part of the word, so it could hide a directive.
    @Test(arguments: ["\u{0}", "\n", "\r", "\u{B}", "\u{C}", "\u{1B}", "\u{7F}"])
    func aControlCharacterRefusesTheResponse(_ character: String) {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=60,\(character)no-store"])
        #expect(cache.lastVerdict == .refuse(.malformed) && cache.entries.isEmpty)
        _ = cache.load(answer: ["Cache-Control": "max-age=60", "X": "a\tb é ÿ"])
        #expect(cache.entries.count == 1)
    }

    /// Values are looked at in words of eight bytes.
    @Test func aControlCharacterIsFoundAtEveryPlace() {
        for length in 1...20 {
            for place in 0..<length {
                for byte in UInt8(0)..<0x80 {
                    var bytes = [UInt8](repeating: UInt8(ascii: "a"), count: length)
                    bytes[place] = byte
                    let isControl = byte < 0x20 && byte != 0x09 || byte == 0x7F
                    let value = String(decoding: bytes, as: UTF8.self)
                    #expect(StorableFields.areWellFormed(["A": "b", "C": value]) == !isControl)
                }
            }
        }
    }

    /// RFC 9110 §5.6.2
    @Test func namesAreTokens() {
        let letters = "abcdefghijklmnopqrstuvwxyz"
        let tokens = Set((letters + letters.uppercased() + "0123456789!#$%&'*+-.^_`|~").utf8)
        for byte in UInt8.min...UInt8.max { #expect(FieldSyntax.isTokenByte(byte) == tokens.contains(byte)) }
        #expect(StorableFields.areWellFormed(["a~": "1"]) && !StorableFields.areWellFormed(["": "1"]))
        for name in ["a b", "a:", "é"] {
            #expect(!StorableFields.areWellFormed(HeaderFields([HeaderFields.Field(name: name, value: "1")])))
        }
    }

    /// Long names are decided by words: each byte at each place, among others.
    @Test func longNamesAreTokensToo() {
        for length in [1, 7, 8, 9, 15, 16, 17] {
            for place in 0..<length {
                for byte in UInt8.min...UInt8.max {
                    var bytes = [UInt8](repeating: UInt8(ascii: place % 2 == 0 ? "a" : "-"), count: length)
                    bytes[place] = byte
                    let isOfThem = bytes.withUnsafeBytes { $0.hasOnlyLettersAndHyphens }
                    let isLetter = byte == 0x2D || byte < 0x80 && Character(UnicodeScalar(byte)).isLetter
                    #expect(isOfThem == (length >= 8 && isLetter), "\(length) \(place) \(byte)")
                    let name = String(decoding: bytes, as: UTF8.self)
                    let fields = HeaderFields([HeaderFields.Field(name: name, value: "1")])
                    #expect(StorableFields.areWellFormed(fields) == FieldSyntax.isToken(name))
                }
            }
        }
    }

    /// cache-tests `headers-omit-headers-listed-in-Connection`
    @Test func fieldsNamedInConnectionAreNotStored() {
        let fields: HeaderFields = ["Connection": "a, B", "connection": "d", "A": "1", "b": "2", "c": "3", "D": "4"]
        #expect(StorableFields.filtered(fields) == ["c": "3"])
    }

    @Test func connectionCannotRemoveWhatReuseDependsOn() {
        let fields: HeaderFields = ["Connection": "cache-control, vary", "Cache-Control": "no-cache", "Vary": "a"]
        #expect(StorableFields.filtered(fields) == ["Cache-Control": "no-cache", "Vary": "a"])
    }

    /// RFC 9110 §6.6.1
    @Test func responseWithoutADateGetsOne() {
        var cache = PureCache()
        #expect(cache.load(answer: ["Cache-Control": "max-age=60"]).fields["Date"] == nil)
        cache.now += 5
        #expect(cache.load().fields["Date"] == httpDate())
    }

    /// cache-tests `304-etag-update-response-*`
    @Test func newFieldsReplaceThoseOfTheirName() {
        let stored: HeaderFields = [
            "A": "1", "a": "2", "B": "3", "Age": "9", "Content-Length": "36", "X": "y", "Content-Type": "text/plain",
            "X-Frame-Options": "deny", "Content-Security-Policy": "old",
        ]
        let new: HeaderFields = [
            "a": "new", "Content-Length": "10", "Content-Encoding": "br", "Content-Range": "bytes 0-1/2",
            "Set-Cookie": "c=d", "Transfer-Encoding": "chunked", "content-type": "text/html",
            "X-Frame-Options": "sameorigin",
            "Content-Security-Policy": "new",
        ]
        let now = PureCache.start
        let response = StoredResponse(
            method: "GET", status: 200, fields: stored, requestTime: now, responseTime: now, vary: .none)
        let exchange = Exchange(
            request: RequestFacts(method: "GET", fields: [:]), variants: [], status: 304, fields: new,
            requestTime: now, responseTime: now)
        let updated = StorableFields.updated(response, by: exchange, isShared: false).fields
        #expect(updated.values(of: "A") == ["new"])
        #expect(updated["B"] == "3")
        #expect(updated["Content-Length"] == "36" && updated["Content-Security-Policy"] == "new")
        // The bytes are the stored ones, and so is what a browser may make of them.
        #expect(updated["Content-Type"] == "text/plain" && updated["X-Frame-Options"] == "deny")
        #expect(updated["Age"] == nil)
        for name in ["Content-Encoding", "Content-Range", "Set-Cookie", "Transfer-Encoding"] {
            #expect(updated[name] == nil)
        }
    }
}
