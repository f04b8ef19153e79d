#if os(Linux)
    import Foundation
    import Testing

    private let python = ["/usr/bin/python3", "/usr/local/bin/python3"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    /// A second program reads a folder by `Documentation/OnDiskFormat.md` alone, and finds what the inspector finds.
    @Suite(.serialized, .enabled(if: python != nil, "needs Python")) struct ReaderTests {
        private let scratch: Scratch
        private let repository = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../..").standardized

        init() throws { scratch = try Scratch() }

        private func compare(_ folders: String...) throws -> Tool.Run {
            let reader = repository.appendingPathComponent("Tools/read-folder").path
            return try Tool.run(
                [reader, "--compare", Tool.program.path] + folders, program: URL(fileURLWithPath: python ?? ""))
        }

        @Test func bothReadTheSameInEachFolder() throws {
            let fixtures = repository.appendingPathComponent("Tests/DiskURLCacheTests/Fixtures")
            let names = ["v1", "linux"].map { fixtures.appendingPathComponent($0).path }
            let origin = try Origin()
            let filled = scratch.path("filled")
            let urls = ["/", "/a?b=1", "/a?b=2", "/%C3%A9/\(String(repeating: "long/", count: 200))"].map {
                origin.url + $0
            }
            expect(0, "^4 of 4", try Tool.run(["fill", filled] + urls))
            let demo = try scratch.demo(entries: 300)
            // A damaged body, a torn record, one under another name, no record, no index.
            let files = try scratch.files(in: filled + "/records")
            var bytes = try Data(contentsOf: files[0])
            bytes[0] ^= 1
            try bytes.write(to: files[0])
            try Data(contentsOf: files[1]).dropLast().write(to: files[1])
            let moved = files[2].deletingLastPathComponent().appendingPathComponent(String(repeating: "0", count: 33))
            try FileManager.default.moveItem(at: files[2], to: moved)
            try Data("no record".utf8).write(to: moved.appendingPathExtension("txt"))
            try? FileManager.default.removeItem(atPath: filled + "/index.plist")
            let run = try compare(names[0], names[1], filled, demo)
            expect(0, "/cache: 300 records, read alike by both", run)
            expect(0, "/filled: 4 records, read alike by both", run)
            expect(0, "/v1: [1-9][0-9]* records, read alike by both", run)
            expect(0, "\"state\" : \"foreign\"", try Tool.run("list", filled, "--json"))
        }
    }
#endif
