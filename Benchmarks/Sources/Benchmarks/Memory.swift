import Foundation

#if canImport(Glibc)
    // For mallinfo2.
    import CSQLite
#endif

/// What this process holds.
enum Memory {
    /// The most that was resident at any time.
    static func peakBytes() throws -> Int { try status("VmHWM") }

    /// Bytes that were allocated and not freed; what the allocator keeps for later is not among them.
    static func heapBytes() -> Int {
        #if canImport(Glibc)
            let info = mallinfo2()
            return Int(info.uordblks) + Int(info.hblkhd)
        #else
            return 0
        #endif
    }

    static func openDescriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }

    private static func status(_ name: String) throws -> Int {
        let lines = try String(contentsOfFile: "/proc/self/status", encoding: .utf8).split(separator: "\n")
        guard let line = lines.first(where: { $0.hasPrefix("\(name):") }),
            let kilobytes = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({
                Int($0)
            })
        else { throw Child.Failure(message: "no \(name)") }
        return kilobytes << 10
    }
}
