// Measures the memory of a large body on its way through CachingHTTPClient: for Documentation/Performance.md. On Linux
// only.
//
//     swift run -c release --package-path Integrations LargeBody [megabytes]
//
// A new process measures each row, also for the tests: LargeBody URL LENGTH DIRECTORY [session]. If DIRECTORY is
// "none", there is no cache. With "session" the load is that of a delegate of a URLSession over AsyncHTTPClient. The
// process prints by how many bytes its memory grew at most.

import AsyncHTTPClient
import CachingHTTPClient
import DiskURLCache
import Foundation
import LoopbackOrigin
import NIOConcurrencyHelpers
import NIOCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@main struct Program {
    static func main() async throws {
        let arguments = CommandLine.arguments
        if arguments.count == 5, arguments[4] == "session", let length = Int(arguments[2]) {
            print(try await growthBySession(url: arguments[1], length: length, directory: arguments[3]))
        } else if arguments.count == 4, let length = Int(arguments[2]) {
            print(try await growth(url: arguments[1], length: length, directory: arguments[3]))
        } else if arguments.count <= 2, let megabytes = Int(arguments.dropFirst().first ?? "1024"), megabytes > 0 {
            try await table(megabytes)
        } else {
            FileHandle.standardError.write(Data("usage: LargeBody [megabytes]\n".utf8))
            exit(64)
        }
    }

    // MARK: The table

    private static func table(_ megabytes: Int) async throws {
        let length = megabytes << 20
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("large-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let origin = try await MarkedBody.origin(length: length)
        print("A body of \(megabytes) MB, a process for each row: the most memory beyond that before the load.\n")
        print("| | memory | time |\n|---|---|---|")
        for (name, path, arguments) in [
            ("HTTPClient", "/stored", ["none"]), ("not stored", "/no-store", [folder.path]),
            ("stored", "/stored", [folder.path]), ("from disk, in a new process", "/stored", [folder.path]),
            ("session, not stored", "/no-store/session", [folder.path, "session"]),
            ("session, stored", "/stored/session", [folder.path, "session"]),
            ("from disk, session", "/stored/session", [folder.path, "session"]),
        ] {
            let asked = origin.requests.count
            let start = DispatchTime.now().uptimeNanoseconds
            let grown = try await child([origin.url(path), "\(length)"] + arguments)
            let time = Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
            print("| \(name) | \(String(format: "%.1f MB | %.1f s |", Double(grown) / 1_048_576, time))")
            guard (origin.requests.count == asked) == name.hasPrefix("from disk") else {
                print("WRONG: \(origin.requests.count - asked) requests at the origin")
                exit(1)
            }
        }
    }

    private static func child(_ arguments: [String]) async throws -> Int {
        let process = Process()
        let output = Pipe()
        process.executableURL = Bundle.main.executableURL
        process.arguments = arguments
        process.standardOutput = output
        // The origin runs in this process meanwhile, so no thread of its pool is to wait here.
        let status = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        guard status == 0, let grown = Int(text.dropLast()) else { throw Failure() }
        return grown
    }

    // MARK: One load

    private static func growth(url: String, length: Int, directory: String) async throws -> Int {
        let timeout = TimeAmount.minutes(10)
        let load: @Sendable (HTTPClientRequest) async throws -> HTTPClientResponse
        let shutdown: @Sendable () async throws -> Void
        if directory == "none" {
            let client = HTTPClient()
            load = { try await client.execute($0, timeout: timeout) }
            shutdown = { try await client.shutdown() }
        } else {
            let storage = DiskURLCache.Configuration(
                memoryCapacity: 16 << 20, diskCapacity: 3 * length + (16 << 20),
                directory: URL(fileURLWithPath: directory, isDirectory: true))
            let client = CachingHTTPClient(storage: storage)
            load = { try await client.execute($0, timeout: timeout) }
            shutdown = { try await client.shutdown() }
        }
        // All code and all threads are there before it counts.
        let small = try await MarkedBody.origin(length: 1 << 20)
        for path in ["/stored", "/stored", "/no-store"] {
            try await MarkedBody.read(load(HTTPClientRequest(url: small.url(path))).body, length: 1 << 20)
        }
        try resetPeak()
        let before = try memory("VmRSS")
        try await MarkedBody.read(load(HTTPClientRequest(url: url)).body, length: length)
        try await shutdown()
        return max(0, try memory("VmHWM") - before)
    }

    private static func growthBySession(url: String, length: Int, directory: String) async throws -> Int {
        let cache = DiskURLCache(
            memoryCapacity: 16 << 20, diskCapacity: 3 * length + (16 << 20),
            directory: URL(fileURLWithPath: directory, isDirectory: true))
        let counter = Counter()
        let session = try cache.makeSession(
            configuration: .ephemeral, delegate: counter, client: HTTPClient.Configuration())
        let small = try await MarkedBody.origin(length: 1 << 20)
        for path in ["/stored/small", "/stored/small", "/no-store/small"] {
            guard try await counter.count(small.url(path), in: session) == 1 << 20 else { throw Failure() }
        }
        try resetPeak()
        let before = try memory("VmRSS")
        guard try await counter.count(url, in: session) == length else { throw Failure() }
        cache.flush()
        session.finishTasksAndInvalidate()
        return max(0, try memory("VmHWM") - before)
    }

    /// The peak counts from now on (proc(5)).
    private static func resetPeak() throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: "/proc/self/clear_refs"))
        try file.write(contentsOf: Data("5".utf8))
        try file.close()
    }

    private static func memory(_ name: String) throws -> Int {
        let text = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
        guard let kilobytes = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) }) else {
            throw Failure()
        }
        return kilobytes << 10
    }
}

private struct Failure: Error {}

/// A delegate that counts the bytes of one load at a time.
private final class Counter: NSObject, URLSessionDataDelegate, Sendable {
    private let state = NIOLockedValueBox((count: 0, end: CheckedContinuation<Int, any Error>?.none))

    func count(_ url: String, in session: URLSession) async throws -> Int {
        guard let url = URL(string: url) else { throw Failure() }
        return try await withCheckedThrowingContinuation { continuation in
            state.withLockedValue { $0 = (0, continuation) }
            session.dataTask(with: url).resume()
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        state.withLockedValue { $0.count += data.count }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let (count, end) = state.withLockedValue { $0 }
        if let error { end?.resume(throwing: error) } else { end?.resume(returning: count) }
    }
}
