#if os(Linux) || os(macOS)
    import Foundation
    import Testing

    /// Apple wants a reason for each use of some APIs. The manifest names those that the sources use, and no others.
    @Suite(.fewAtATime) struct PrivacyManifestTests {
        private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Sources/DiskURLCache")

        /// Apple, "Describing use of required reason API".
        private static let categories: [(name: String, uses: [String])] = [
            (
                "FileTimestamp",
                [
                    "stat(", "getattrlist", "fgetattrlist", "creationDate", "modificationDate",
                    "contentModificationDateKey", "creationDateKey",
                ]
            ),
            ("SystemBootTime", ["systemUptime", "mach_absolute_time"]),
            ("DiskSpace", ["statfs", "statvfs", "volumeAvailableCapacity", "volumeTotalCapacity", "systemFreeSize"]),
            ("ActiveKeyboards", ["activeInputModes"]),
            ("UserDefaults", ["UserDefaults"]),
        ]

        @Test func itNamesWhatTheSourcesUse() throws {
            let manifest = try String(
                contentsOf: Self.sources.appendingPathComponent("PrivacyInfo.xcprivacy"), encoding: .utf8)
            let names = FileManager.default.enumerator(atPath: Self.sources.path)?.compactMap { $0 as? String } ?? []
            var code = ""
            for name in names where name.hasSuffix(".swift") {
                let text = try String(contentsOf: Self.sources.appendingPathComponent(name), encoding: .utf8)
                for line in text.split(separator: "\n") where !line.drop(while: { $0 == " " }).hasPrefix("//") {
                    code += line + "\n"
                }
            }
            #expect(!code.isEmpty)
            for (name, uses) in Self.categories {
                let isUsed = uses.contains { code.contains($0) }
                #expect(manifest.contains("NSPrivacyAccessedAPICategory" + name) == isUsed, "\(name)")
            }
        }
    }
#endif
