import Foundation

/// The digests of its body that a response states, if they can be compared with the bytes that a client gets:
/// `Content-Digest` and `Repr-Digest` (RFC 9530), and `Unencoded-Digest` (draft-ietf-httpbis-unencoded-digest).
package struct BodyDigests: Sendable {
    /// A digest in one of the fields.
    private struct Stated: Sendable {
        let field: String
        let algorithm: ContentHash.Algorithm
        let value: [UInt8]

        var name: String { "\(field) (\(algorithm.rawValue))" }
    }

    /// The fields that state a digest of the body, or of a part of it.
    static let fieldNames = ["Content-Digest", "Repr-Digest", "Unencoded-Digest", "Content-MD5"]

    private let stated: [Stated]
    private var hashes: [ContentHash.Algorithm: ContentHash] = [:]

    /// Nil if there is nothing to compare. Malformed fields are ignored, and so are algorithms that do not protect
    /// against adversaries (RFC 9530 §5).
    /// - Parameters:
    ///   - method: the method of the request.
    ///   - isDecoded: whether the client gets bodies without their content codings.
    package init?(_ fields: HeaderFields, status: Int, method: String, isDecoded: Bool) {
        guard method != "HEAD", status != 204, status != 304 else { return nil }
        let isCoded = fields.nameCoding
        let isPart = status == 206
        var names: [String] = []
        // The content as it was sent (RFC 9530 §2).
        if !isCoded { names.append("Content-Digest") }
        // The whole representation, with its codings (RFC 9530 §3).
        if !isCoded, !isPart { names.append("Repr-Digest") }
        // The whole representation without them.
        if !isCoded || isDecoded, !isPart { names.append("Unencoded-Digest") }
        var stated: [Stated] = []
        for name in names {
            if let value = fields[name] { stated += Self.members(of: value, in: name) }
        }
        self.stated = stated
        guard !stated.isEmpty else { return nil }
        for digest in stated { hashes[digest.algorithm] = ContentHash(digest.algorithm) }
    }

    private static func members(of value: String, in field: String) -> [Stated] {
        guard let entries = StructuredField.dictionary(value) else { return [] }
        return ContentHash.Algorithm.allCases.compactMap { algorithm in
            guard case .bytes(let bytes)? = entries[algorithm.rawValue]?.value else { return nil }
            return Stated(field: field, algorithm: algorithm, value: bytes)
        }
    }

    /// The names of the digests, such as `Repr-Digest (sha-256)`.
    package var names: String { stated.map(\.name).joined(separator: ", ") }

    /// Adds the next piece of the body.
    mutating func update(_ piece: Data) {
        for algorithm in hashes.keys { hashes[algorithm]?.update(piece) }
    }

    /// The digest that the body contradicts; nil if the body matches all of them. Called after the end.
    var contradiction: String? {
        let actual = hashes.mapValues(\.digest)
        return stated.first { actual[$0.algorithm] != $0.value }?.name
    }
}

extension DiskURLCache {
    /// What happens to a response whose body does not match a digest that it states: `Repr-Digest`, `Content-Digest`
    /// (RFC 9530) or `Unencoded-Digest`, by SHA-256 or SHA-512. Digests of encoded content cannot be compared with a
    /// body that arrives decoded.
    @nonexhaustive public enum WrongDigest: Sendable, Hashable {
        /// Digests are not computed.
        case accepted
        /// The response is delivered and not stored (``Reason/wrongDigest``). An older stored response stays.
        case notStored
        /// Like `notStored`, and direct calls throw ``Reason/wrongDigest``: `data(for:)`, and at the end of the body
        /// `bytes(for:)`, `file(for:at:)` and `load(_:through:)`. A session's loads do not fail.
        case failed
    }
}
