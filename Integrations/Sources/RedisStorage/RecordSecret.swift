import Crypto
import Foundation

/// A secret that the processes know and the server does not. Without it a program can neither compute a name, nor forge
/// a record, nor move one to a different name, nor read the tail of a record (URL, header fields, digests).
///
/// HMAC-SHA256 (RFC 2104) makes the names, the tag of a record, and the stream of bytes that hides a tail. Not
/// protected: bodies are readable, and an older record can be put back under its name, since only the log and the sets
/// on the server know that it was removed.
struct RecordSecret: Sendable {
    private let key: SymmetricKey

    private static let nonceLength = 16
    private static let tagLength = 32

    /// The bytes that a secret of an app has at least; a shorter one can be guessed.
    static let shortest = 16

    init(_ secret: Data) {
        key = SymmetricKey(data: secret)
    }

    func code(of message: [UInt8]) -> [UInt8] { Array(HMAC<SHA256>.authenticationCode(for: message, using: key)) }

    /// The name that is used on the server instead of that of a key, group or variant.
    func name(_ name: String, _ purpose: String) -> String {
        code(of: Array("\(purpose)\n\(name)".utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    // MARK: Records

    private func tag(_ sealed: some Sequence<UInt8>, _ place: String) -> [UInt8] {
        code(of: Self.tagged(sealed, place))
    }

    private static func tagged(_ sealed: some Sequence<UInt8>, _ place: String) -> [UInt8] {
        Array("record\n\(place)\n".utf8) + sealed
    }

    /// The tag, a random number, the length of the tail, the hidden tail, and the body.
    /// - Parameter place: the name and the variant under which the record is stored.
    func seal(_ record: Data, bodyLength: Int, at place: String) -> Data {
        let tail = record.dropFirst(bodyLength)
        let nonce = (0..<Self.nonceLength).map { _ in UInt8.random(in: .min ... .max) }
        let length = withUnsafeBytes(of: UInt32(clamping: tail.count).bigEndian) { Array($0) }
        let sealed = nonce + length + hide(tail, nonce) + record.prefix(bodyLength)
        return Data(tag(sealed, place) + sealed)
    }

    /// Nil if the bytes were not made by `seal` with this secret for this place.
    func open(_ sealed: Data, at place: String) -> Data? {
        let bytes = Array(sealed)
        let start = Self.tagLength + Self.nonceLength + 4
        guard bytes.count >= start else { return nil }
        // Takes the same time wherever the first difference is.
        guard
            HMAC<SHA256>.isValidAuthenticationCode(
                bytes.prefix(Self.tagLength), authenticating: Self.tagged(bytes[Self.tagLength...], place), using: key)
        else { return nil }
        let length = bytes[(start - 4)..<start].reduce(0) { $0 << 8 | Int($1) }
        guard length <= bytes.count - start else { return nil }
        let nonce = Array(bytes[Self.tagLength..<(start - 4)])
        return Data(bytes[(start + length)...] + hide(bytes[start..<(start + length)], nonce))
    }

    // MARK: Messages of the log

    func seal(_ message: String) -> String {
        let nonce = (0..<Self.nonceLength).map { _ in UInt8.random(in: .min ... .max) }
        return Data(nonce + hide(message.utf8, nonce)).base64EncodedString()
    }

    /// Nil if the text does not have that form.
    func open(_ sealed: some StringProtocol) -> String? {
        guard let bytes = Data(base64Encoded: String(sealed)), bytes.count >= Self.nonceLength else { return nil }
        let nonce = Array(bytes.prefix(Self.nonceLength))
        return String(bytes: hide(bytes.dropFirst(Self.nonceLength), nonce), encoding: .utf8)
    }

    /// The bytes combined (XOR) with a stream that is computed from the secret and the nonce. Doing it twice gives the
    /// original bytes.
    private func hide(_ bytes: some Collection<UInt8>, _ nonce: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var stream: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            if index % Self.tagLength == 0 {
                let block = withUnsafeBytes(of: UInt64(index / Self.tagLength).bigEndian) { Array($0) }
                stream = code(of: Array("stream\n".utf8) + nonce + block)
            }
            result.append(byte ^ stream[index % Self.tagLength])
        }
        return result
    }
}
