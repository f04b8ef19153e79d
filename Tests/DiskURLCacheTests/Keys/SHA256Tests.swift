import Foundation
import Testing

@testable import DiskURLCache

@Suite(.fewAtATime) struct SHA256Tests {
    // FIPS 180-4 and NIST CAVP (SHA256ShortMsg, SHA256LongMsg) vectors.
    static let vectors: [(message: String, digest: String)] = [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
        ),
        (
            String(repeating: "a", count: 1_000_000),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        ),
    ]

    @Test(arguments: vectors) func digestsOfKnownMessages(vector: (message: String, digest: String)) {
        #expect(SHA256Digest.digest(of: vector.message).hex == vector.digest)
    }

    /// Every length around the block boundary, against the one digest of all digests that another implementation
    /// (Python's hashlib) gives.
    @Test func lengthsAroundTheBlockBoundary() {
        let all = (0...130).map { SHA256Digest.digest(of: String(repeating: "x", count: $0)).hex }.joined()
        #expect(
            SHA256Digest.digest(of: all).hex == "87aca1c44bc7ba8897768170211f0a02063de70801131ff86c7edb9ce32c6a50")
    }

    /// The names of records are read back from a folder: what is not exactly such a name is none.
    @Test func onlyLowerCaseDigitsAreRead() {
        func read(_ bytes: some Collection<UInt8>) -> KeyName? { Array(bytes).withUnsafeBytes { KeyName(hex: $0) } }
        let name = RequestKey.test("digits").name
        let digits = Array(name.hex.utf8)
        let allowed = Set("0123456789abcdef".utf8)
        for position in digits.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = digits
                changed[position] = byte
                let found = read(changed)
                #expect((found != nil) == allowed.contains(byte), "\(byte) at \(position)")
                if let found { #expect(Array(found.hex.utf8) == changed) }
            }
        }
        #expect(read(digits) == name)
        #expect(read(digits.dropLast()) == nil && read(digits + digits.prefix(1)) == nil && read([]) == nil)
    }
}
