import Foundation

/// What one has to know to compare numbers. Printed above the table, and part of the JSON.
enum Setup {
    static func describe(_ options: Options) -> [(String, String)] {
        let date = ISO8601DateFormatter().string(from: Date())
        return [
            ("date", date),
            ("processor", "\(processor), \(ProcessInfo.processInfo.activeProcessorCount) cores"),
            ("kernel", kernel),
            ("file system", "\(fileSystem(of: options.scratch)) at \(options.scratch)"),
            ("Swift", swiftVersion),
            ("load at the start", load),
            ("library", options.label ?? "as built"),
            ("run", options.isQuick ? "quick" : "full"),
            ("entries", "1,000 and \(options.manyEntries.grouped); bodies 1 KB to 8 MB; warm page cache"),
            (
                "responses",
                "\(Content.headers.count) header fields with Vary: Accept-Encoding; query strings; requests with Accept-Encoding; disk layer on"
            ),
            ("sides", "measured in turns, medians"),
            (
                "origin",
                "a process of its own on loopback, the same for all sides; stock is URLSession with urlCache = nil"
            ),
        ]
    }

    private static var processor: String {
        let lines = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?.split(separator: "\n") ?? []
        let name = lines.first { $0.hasPrefix("model name") }?.split(separator: ":").last
        return name.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown"
    }

    private static var kernel: String {
        var names = utsname()
        uname(&names)
        func text<Field>(_ field: Field) -> String {
            withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        }
        return "\(text(names.sysname)) \(text(names.release)) \(text(names.machine))"
    }

    private static func fileSystem(of path: String) -> String {
        let mounts = (try? String(contentsOfFile: "/proc/mounts", encoding: .utf8)) ?? ""
        let real = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        var best = (point: "", type: "unknown")
        for line in mounts.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count > 2, real.hasPrefix(fields[1]), fields[1].count >= best.point.count else { continue }
            best = (String(fields[1]), String(fields[2]))
        }
        return best.type
    }

    private static var load: String {
        let text = (try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8)) ?? "unknown"
        return text.split(separator: " ").prefix(2).joined(separator: " ")
    }

    private static var swiftVersion: String {
        #if compiler(>=6.4)
            "6.4 or later"
        #elseif compiler(>=6.3)
            "6.3"
        #elseif compiler(>=6.2)
            "6.2"
        #else
            "6.0 or 6.1"
        #endif
    }
}
