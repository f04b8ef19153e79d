import Foundation

/// A file that is closed when the last reference is released.
final class OpenFile: Sendable {
    let file: Int32
    private let files: any FileSystem

    init(_ file: Int32, _ files: any FileSystem) {
        self.file = file
        self.files = files
    }

    deinit { files.closeQuietly(file) }

    /// The first bytes of the file as a body, which keeps it open.
    func body(count: Int) -> OpenBody {
        OpenBody(count: count, read: bytes(_:followedBy:), copy: copy(_:to:))
    }

    /// These bytes of the file, followed by other data, in one piece of memory. Nil if they cannot all be read.
    func bytes(_ range: Range<Int>, followedBy rest: [Data]) -> Data? {
        let count = rest.reduce(range.count) { $0 + $1.count }
        guard count > 0 else { return Data() }
        guard let memory = malloc(count) else { return nil }
        let buffer = UnsafeMutableRawBufferPointer(start: memory, count: count)
        let beginning = UnsafeMutableRawBufferPointer(rebasing: buffer[..<range.count])
        guard range.isEmpty || (try? files.readFully(file, beginning, at: range.lowerBound)) == range.count else {
            free(memory)
            return nil
        }
        var end = range.count
        for data in rest {
            data.copyBytes(to: UnsafeMutableRawBufferPointer(rebasing: buffer[end...]))
            end += data.count
        }
        return Data(bytesNoCopy: memory, count: count, deallocator: .free)
    }

    /// Appends these bytes to a file that is open for writing. Returns the system's error number if that fails.
    func copy(_ range: Range<Int>, to destination: Int32) -> Int32? {
        do throws(Errno) {
            let copied = try copyInKernel(range, to: destination)
            guard copied < range.count else { return nil }
            // Another file system, or a system that cannot copy.
            guard let rest = bytes(range.lowerBound + copied..<range.upperBound, followedBy: []) else {
                return EIO
            }
            try SystemFiles().writeFully(destination, rest)
            return nil
        } catch {
            return error.code
        }
    }

    /// Copies inside the system, which shares the blocks of both files where the file system can.
    /// - Returns: how many bytes were copied; fewer if the rest has to be read and written.
    private func copyInKernel(_ range: Range<Int>, to destination: Int32) throws(Errno) -> Int {
        guard let copyFileRange = Self.copyFileRange else { return 0 }
        var position = Int64(range.lowerBound)
        while position < range.upperBound {
            let count = copyFileRange(file, &position, destination, nil, range.upperBound - Int(position), 0)
            if count == 0 { break }
            guard count < 0 else { continue }
            let error = Errno.last
            switch error.code {
            case EINTR: continue
            case ENOSPC, EDQUOT, EFBIG: throw error
            // Files of different file systems, or a system that does not have the call.
            default: return Int(position) - range.lowerBound
            }
        }
        return Int(position) - range.lowerBound
    }

    private typealias CopyFileRange =
        @convention(c) (Int32, UnsafeMutablePointer<Int64>?, Int32, UnsafeMutablePointer<Int64>?, Int, UInt32) -> Int

    /// `copy_file_range(2)`, which the C libraries of Linux have, but show to GNU programs alone: so it is looked up by
    /// its name. Nil without it, as on Apple platforms.
    private static let copyFileRange: CopyFileRange? = {
        #if os(Linux) || os(Android)
            dlsym(nil, "copy_file_range").map { unsafeBitCast($0, to: CopyFileRange.self) }
        #else
            nil
        #endif
    }()
}
