import Foundation

#if canImport(Glibc)
    // For mallinfo2.
    import CSQLite
#endif

/// The memory of this process.
enum Memory {
    /// The largest resident size so far.
    static func peakBytes() throws -> Int { try status("VmHWM") }

    /// Bytes that were allocated and not freed, without those that the allocator keeps for later.
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
