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
}
