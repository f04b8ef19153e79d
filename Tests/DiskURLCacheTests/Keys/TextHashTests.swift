import Testing

@testable import DiskURLCache

@Suite(.fewAtATime) struct TextHashTests {
    @Test func equalTextsHashAlike() {
        for length in 0..<70 {
            let text = String(repeating: "ab", count: length)
            #expect(TextHash.hash(text) == TextHash.hash(String(Array(text))))
        }
    }

    /// Texts as URLs are: alike but for one byte anywhere. In 300,000 of them, 64 bits leave no room for a collision.
    @Test func textsThatDifferInOneByteHashDifferently() {
        var seen: Set<Int> = []
        var count = 0
        for length in 1..<50 {
            for position in 0..<length {
                for byte in stride(from: UInt8(33), to: 127, by: 1) {
                    var bytes = [UInt8](repeating: 32, count: length)
                    bytes[position] = byte
                    seen.insert(TextHash.hash(String(decoding: bytes, as: UTF8.self)))
                    count += 1
                }
            }
        }
        #expect(seen.count == count)
    }

    /// Only the case of letters makes no difference: of bytes that count as equal, a server could make any number of
    /// names with one hash.
    @Test(arguments: 1..<40) func onlyTheCaseOfLettersIsIgnored(length: Int) {
        var seen: [Int: String] = [:]
        for byte in UInt8(0)..<128 {
            var bytes = [UInt8](repeating: UInt8(ascii: "-"), count: length)
            bytes[length / 2] = byte
            let text = String(decoding: bytes, as: UTF8.self)
            let hash = TextHash.hash(ignoringCaseOf: text)
            #expect(seen[hash].map { $0 == text.lowercased() || $0.lowercased() == text.lowercased() } != false)
            #expect(hash == TextHash.hash(ignoringCaseOf: text.uppercased()))
            seen[hash] = text
        }
        #expect(seen.count == 128 - 26)
    }

    @Test func lowAndHighBitsSpread() {
        var low = [Int](repeating: 0, count: 64)
        var high = low
        for number in 0..<6_400 {
            let hash = UInt(bitPattern: TextHash.hash("https://example.com/item-\(number)"))
            low[Int(hash % 64)] += 1
            high[Int(hash >> 58)] += 1
        }
        for count in low + high { #expect((20...200).contains(count)) }
    }
}
