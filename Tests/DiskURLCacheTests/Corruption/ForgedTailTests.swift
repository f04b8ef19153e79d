import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A body may end like a record: whoever writes it knows the format, and the name of the record of a URL. Until its own
/// tail is written, nothing that has a record's name may end with it.
@Suite(.fewAtATime) struct ForgedTailTests {
    /// The URL's own body, with the tail of a record that has other fields.
    private func forgedBody(for key: RequestKey, url: String) throws -> Data {
        let body = testBody(1, length: 300 << 10)
        let entry = StoredEntry.test(
            body, sequence: 1, url: url, fields: ["X-Forged": "1", "Cache-Control": "max-age=9999"])
        var record = try #require(
            PreparedRecord(entry, for: key.diskKey(ofRecordWith: url), keepsURL: true))
        return body + record.withTail { Data($0) }
    }

    /// At each file operation of the store another cache looks for the record.
    @Test func aBodyThatEndsLikeARecordIsNoRecord() throws {
        let directory = try SharedDirectory()
        let files = FaultyFileSystem()
        let owner = directory.open(files)
        let request = Responses.request("/a")
        let key = try #require(owner.key(for: request))
        let forged = try forgedBody(for: key, url: Responses.url("/a").absoluteString)
        let guest = directory.open()
        // As a record it would be believed.
        let name = RecordName(key: key.name, slot: 0)
        let path = directory.url.path + "/records/\(name.text)"
        try forged.write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        #expect(guest.cachedResponse(for: request) != nil)
        try FileManager.default.removeItem(atPath: path)
        guest.forgetMemory()

        let found = Mutex<[Int]>([])
        files.rule = { _ in
            guest.forgetMemory()
            if let response = guest.cachedResponse(for: request)?.response as? HTTPURLResponse {
                let isForged = response.value(forHTTPHeaderField: "X-Forged") != nil
                found.withLock { $0.append(isForged ? 1 : 0) }
            }
            return nil
        }
        owner.storeCachedResponse(
            CachedURLResponse(response: Responses.http(Responses.url("/a")), data: forged), for: request)
        files.rule = { _ in nil }
        #expect(!found.withLock { $0 }.contains(1))
        #expect(guest.cachedResponse(for: request)?.data == forged)
    }
}
