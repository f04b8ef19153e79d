import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

/// What a client that calls back does not wait for.
@Suite(.fewAtATime) struct CallbackFilesTests {
    private let head = DiskURLCache.Head(status: 200, fields: [("Cache-Control", "max-age=60")])

    /// An event loop calls for all requests: what one answer writes holds up no other.
    @Test func noFileIsWrittenInsideACall() async throws {
        let caller = DispatchQueue(label: "event loop")
        let key = DispatchSpecificKey<Bool>()
        caller.setSpecific(key: key, value: true)
        let writes = Mutex((count: 0, inCall: 0))
        let files = FaultyFileSystem { call in
            let isInCall = DispatchQueue.getSpecific(key: key) == true
            if call.operation == .write {
                writes.withLock {
                    $0.count += 1
                    if isInCall { $0.inCall += 1 }
                }
            }
            return nil
        }
        let own = try ScratchDirectory("callback-files")
        let cache = DiskURLCache(in: own, clock: ManualClock(), memory: 64 << 20, disk: 64 << 20) {
            $0.fileSystem = files
        }
        for (path, bytes) in [("/small", 100), ("/large", 3 << 20)] {
            let transport = ManualTransport { [head] receiver in
                caller.async {
                    receiver.receive(head)
                    receiver.receive(Data(count: bytes)) { caller.async { receiver.finish() } }
                }
            }
            let request = Responses.request(path)
            for try await _ in try await cache.load(request, through: transport) {}
            #expect(cache.contains(request))
        }
        #expect(writes.withLock { $0.count > 1 && $0.inCall == 0 })
    }
}
