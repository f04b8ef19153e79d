import Foundation

/// The least that small objects can cost: one append-only file, positions in memory, and nothing is ever freed. The
/// difference to this is the cost of a file for each entry.
final class SegmentFile {
    private let descriptor: Int32
    private var places: [String: (offset: Int, count: Int)] = [:]
    private var end = 0

    init(path: String) throws {
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw RawFiles.Failure(call: "open", errno: errno) }
    }

    deinit {
        close(descriptor)
    }

    func append(_ bytes: Data, for key: String) throws {
        let written = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(end)) }
        guard written == bytes.count else { throw RawFiles.Failure(call: "pwrite", errno: errno) }
        places[key] = (end, bytes.count)
        end += bytes.count
    }

    func read(_ key: String) throws -> Data? {
        guard let place = places[key], let buffer = malloc(max(1, place.count)) else { return nil }
        guard pread(descriptor, buffer, place.count, off_t(place.offset)) == place.count else {
            free(buffer)
            throw RawFiles.Failure(call: "pread", errno: errno)
        }
        return Data(bytesNoCopy: buffer, count: place.count, deallocator: .free)
    }
}
