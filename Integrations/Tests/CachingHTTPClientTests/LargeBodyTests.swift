#if os(Linux)
    import Foundation
    import LoopbackOrigin
    import Testing

    /// A body that is larger than the memory it may take, through a process of its own, so that other tests do not
    /// count.
    @Suite(.timeLimit(.minutes(5)), .serialized) struct LargeBodyTests {
        private static let length = 256 << 20

        @Test func aBodyThatIsNotStoredTakesLittleMemory() async throws {
            let directory = scratch()
            defer { try? FileManager.default.removeItem(at: directory) }
            let origin = try await MarkedBody.origin(length: Self.length)
            let grown = try await grown(origin.url("/no-store"), directory)
            #expect(grown < 32 << 20, "\(grown >> 20) MB")
        }

        @Test func aBodyThatIsStoredTakesLittleMemoryAndSoDoesReadingIt() async throws {
            let directory = scratch()
            defer { try? FileManager.default.removeItem(at: directory) }
            let origin = try await MarkedBody.origin(length: Self.length)
            for place in ["stored", "from disk"] {
                let grown = try await grown(origin.url("/stored"), directory)
                #expect(grown < 32 << 20, "\(place): \(grown >> 20) MB")
            }
            #expect(origin.requests.count == 1)
        }

        /// A delegate of a session over the client: what it has not taken yet holds the origin up.
        @Test func aDelegateOfASessionTakesLittleMemory() async throws {
            let directory = scratch()
            defer { try? FileManager.default.removeItem(at: directory) }
            let origin = try await MarkedBody.origin(length: Self.length)
            for (place, path) in [("not stored", "/no-store"), ("stored", "/stored"), ("from disk", "/stored")] {
                let grown = try await grown(origin.url(path), directory, "session")
                #expect(grown < 32 << 20, "\(place): \(grown >> 20) MB")
            }
            #expect(origin.requests.count == 2)
        }

        private func scratch() -> URL {
            FileManager.default.temporaryDirectory.appendingPathComponent("large-body-\(UUID().uuidString)")
        }

        private func grown(_ url: String, _ directory: URL, _ way: String...) async throws -> Int {
            let process = Process()
            let output = Pipe()
            process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
                .deletingLastPathComponent()
                .appendingPathComponent("LargeBody")
            process.arguments = [url, "\(Self.length)", directory.path] + way
            process.standardOutput = output
            let status = try await withCheckedThrowingContinuation { continuation in
                process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
                do { try process.run() } catch { continuation.resume(throwing: error) }
            }
            let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            #expect(status == 0)
            return try #require(Int(text.dropLast()))
        }
    }
#endif
