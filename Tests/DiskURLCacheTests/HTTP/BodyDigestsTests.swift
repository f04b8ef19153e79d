import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Digests that responses state of their bodies (RFC 9530, Unencoded-Digest).
@Suite(.fewAtATime) struct BodyDigestsTests {
    // MARK: SHA-2

    /// FIPS 180-4's examples.
    @Test(arguments: [
        (
            "",
            "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
        ),
        (
            "abc",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        ),
        (
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
            "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909"
        ),
    ])
    func sha512IsRight(text: String, digest: String) {
        var hash = ContentHash(.sha512)
        hash.update(Data(text.utf8))
        #expect(hash.digest.map { String(format: "%02x", $0) }.joined() == digest)
    }

    /// However the bytes come, and at each length around a block.
    @Test func piecesMakeNoDifference() {
        for count in [0, 1, 55, 56, 63, 64, 65, 111, 112, 119, 127, 128, 129, 1_000] {
            let bytes = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 3) })
            var (small, large, wide) = (ContentHash(.sha256), ContentHash(.sha256), ContentHash(.sha512))
            var narrow = ContentHash(.sha512)
            large.update(bytes)
            wide.update(bytes)
            for start in stride(from: 0, to: count, by: 13) {
                small.update(bytes[start..<min(start + 13, count)])
                narrow.update(bytes[start..<min(start + 13, count)])
            }
            #expect(small.digest == large.digest && wide.digest == narrow.digest)
            let known = bytes.withUnsafeBytes { SHA256Digest.digest(of: $0) }.hex
            #expect(large.digest.map { String(format: "%02x", $0) }.joined() == known)
        }
    }

    // MARK: What is compared

    private static let body = "An unexceptional string\n"
    /// Of that body: RFC 9530 Appendix B and the Unencoded-Digest draft have both.
    private static let sha256 = "sha-256=:5Bv3NIx05BPnh0jMph6v1RJ5Q7kl9LKMtQxmvc9+Z7Y=:"
    private static let sha512 =
        "sha-512=:WjyMuMD9EI/v0RoJchcevbo6lF498VyE9564OgXf+98iJptoSvb1Czo9uVJu2bVU/tOv90huiMG3+YaMX1kipw==:"
    private static let wrong = "sha-256=:AAAANIx05BPnh0jMph6v1RJ5Q7kl9LKMtQxmvc9+Z7Y=:"

    /// "fits", the digest that does not, or nil when nothing is compared.
    private static func comparison(
        _ fields: HeaderFields, status: Int = 200, method: String = "GET", isDecoded: Bool = false
    ) -> String? {
        guard var digests = BodyDigests(fields, status: status, method: method, isDecoded: isDecoded) else {
            return nil
        }
        digests.update(Data(body.utf8.prefix(5)))
        digests.update(Data(body.utf8.dropFirst(5)))
        return digests.contradiction ?? "fits"
    }

    @Test(arguments: ["Content-Digest", "Repr-Digest", "Unencoded-Digest"])
    func eachFieldIsCompared(name: String) {
        #expect(Self.comparison([name: Self.sha256]) == "fits")
        #expect(Self.comparison([name: Self.sha512]) == "fits")
        #expect(Self.comparison([name: "\(Self.sha512);x=1, \(Self.sha256)"]) == "fits")
        #expect(Self.comparison([name: Self.wrong]) == "\(name) (sha-256)")
        #expect(Self.comparison([name: "\(Self.sha512), \(Self.wrong)"]) == "\(name) (sha-256)")
        #expect(Self.comparison([name: "sha-512=:AQID:, \(Self.sha256)"]) == "\(name) (sha-512)")
        #expect(Self.comparison([name: Self.sha256, "Content-Encoding": "identity"]) == "fits")
        for value in ["md5=:AQID:", "unixsum=:AQID:", "sha-256=AQID", "sha-256=:A:", "", "SHA-256=:AQID:", "sha-256"] {
            #expect(Self.comparison([name: value]) == nil)
        }
        #expect(Self.comparison([name: Self.wrong], method: "HEAD") == nil)
        #expect(Self.comparison([name: Self.wrong], status: 304) == nil)
    }

    /// A digest is compared with the bytes that it is of, or not at all.
    @Test func codingsAndPartsAreMinded() {
        let all: HeaderFields = [
            "Content-Digest": Self.wrong, "Repr-Digest": Self.wrong, "Unencoded-Digest": Self.sha512,
            "Content-Encoding": "gzip",
        ]
        #expect(Self.comparison(all, isDecoded: true) == "fits")
        #expect(Self.comparison(all) == nil)
        #expect(Self.comparison(["Unencoded-Digest": Self.wrong, "Content-Encoding": "br"], isDecoded: true) != "fits")
        let part: HeaderFields = [
            "Content-Digest": Self.sha256, "Repr-Digest": Self.wrong, "Unencoded-Digest": Self.wrong,
        ]
        #expect(Self.comparison(part, status: 206) == "fits")
        #expect(Self.comparison(["Repr-Digest": Self.wrong], status: 206) == nil)
    }

    /// The fields of a stored response stay true of what is delivered.
    @Test func fieldsFollowTheBytes() {
        var cache = PureCache()
        _ = cache.load(answer: [
            "Cache-Control": "max-age=1", "ETag": "\"1\"", "Content-Digest": "a", "Repr-Digest": "b",
            "Unencoded-Digest": "c",
        ])
        let part = cache.load(["Range": "bytes=1-2"])
        #expect(part.status == 206 && part.fields["Content-Digest"] == nil && part.fields["Repr-Digest"] == "b")
        cache.now += 10
        let confirmed = cache.load(
            status: 304,
            answer: ["ETag": "\"1\"", "Content-Digest": "x", "Repr-Digest": "y", "Unencoded-Digest": "z"])
        #expect(confirmed.source == .validated)
        #expect(["Content-Digest", "Repr-Digest", "Unencoded-Digest"].map { confirmed.fields[$0] } == ["a", "b", "c"])
    }

    // MARK: In a cache

    let scratch: ScratchDirectory

    init() throws { scratch = try ScratchDirectory() }

    private func cache(_ wrongDigest: DiskURLCache.WrongDigest) -> DiskURLCache {
        var settings = DiskURLCache.Configuration(
            memoryCapacity: 16 << 20, diskCapacity: 64 << 20, directory: scratch.url)
        settings.wrongDigest = wrongDigest
        return DiskURLCache(configuration: settings)
    }

    private static func network(_ digest: String, pieces: [Data], status: Int = 200, _ more: HeaderFields = [:])
        -> MemoryTransport
    {
        MemoryTransport { _, exchange in
            var fields = more
            fields.append("Cache-Control", "max-age=60")
            fields.append("Repr-Digest", digest)
            exchange.head(status, fields)
            for piece in pieces { exchange.piece(piece) }
            exchange.end()
        }
    }

    @Test(arguments: [DiskURLCache.WrongDigest.accepted, .notStored, .failed])
    func aResponseWithAWrongDigestIsNotStored(setting: DiskURLCache.WrongDigest) async throws {
        let cache = cache(setting)
        let request = Responses.request("/a")
        let pieces = [Data(Self.body.utf8.prefix(9)), Data(Self.body.utf8.dropFirst(9))]
        func answer(_ digest: String) async throws -> DiskURLCache.Answer {
            try await LoadReader(request, from: cache, over: Self.network(digest, pieces: pieces)).answer()
        }
        let events = cache.events()
        do {
            let answer = try await answer(Self.wrong)
            #expect(setting != .failed && answer.data == Data(Self.body.utf8))
            #expect(answer.report.notStoredReason == (setting == .accepted ? nil : .wrongDigest))
        } catch let reason as DiskURLCache.Reason {
            #expect(setting == .failed && reason == .wrongDigest)
            #expect(reason.description.contains("Repr-Digest (sha-256)"))
        }
        #expect(cache.contains(request) == (setting == .accepted))
        if setting != .accepted {
            let reason = await events.first("the refusal of the response") { event -> DiskURLCache.Reason? in
                if case .notStored(_, let reason) = event { reason } else { nil }
            }
            #expect(reason == .wrongDigest)
        }
        #expect(try await answer(Self.sha256).data == Data(Self.body.utf8))
        #expect(cache.contains(request))
    }

    /// A body that is written to a file while it arrives is compared too, and its file is removed.
    @Test(arguments: [true, false]) func aLargeBodyIsCompared(fits: Bool) async throws {
        let cache = cache(.notStored)
        let piece = Data(repeating: 7, count: 700_000)
        var hash = ContentHash(.sha512)
        for _ in 0..<4 { hash.update(piece) }
        let right = "sha-512=:\(Data(hash.digest).base64EncodedString()):"
        let network = Self.network(
            fits ? right : "sha-512=:AQID:", pieces: [piece, piece, piece, piece])
        let reader = LoadReader(Responses.request("/a"), from: cache, over: network, acceptsPieces: true)
        var bytes = 0
        while let piece = try await reader.next() { bytes += piece.count }
        #expect(bytes == 4 * piece.count)
        await eventually("the verdict about the digest") {
            reader.report.notStoredReason == (fits ? nil : .wrongDigest)
        }
        cache.flush()
        #expect(cache.contains(Responses.request("/a")) == fits)
        if !fits { #expect(cache.currentDiskUsage == 0) }
    }

    @Test func whySaysWithWhatTheBodyIsCompared() throws {
        let cache = cache(.notStored)
        let response = Responses.http(
            Responses.url("/a"), fields: ["Cache-Control": "max-age=60", "Repr-Digest": Self.sha512])
        #expect(
            cache.explanation(for: Responses.request("/a"), response: response).description.contains(
                "contradicts Repr-Digest (sha-512)"))
    }
}
