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

    /// These bytes of the file; nil if they cannot all be read.
    func bytes(_ range: Range<Int>) -> Data? {
        guard !range.isEmpty else { return Data() }
        guard let memory = malloc(range.count) else { return nil }
        let buffer = UnsafeMutableRawBufferPointer(start: memory, count: range.count)
        guard (try? files.readFully(file, buffer, at: range.lowerBound)) == range.count else {
            free(memory)
            return nil
        }
        return Data(bytesNoCopy: memory, count: range.count, deallocator: .free)
    }
}
