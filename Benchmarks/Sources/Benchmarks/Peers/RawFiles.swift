import Foundation

/// The least that the disk can cost: only the system calls to read or write the same bytes.
enum RawFiles {
    struct Failure: Error {
        var call: String
        var errno: Int32
    }

    /// open, fstat, read into new memory, close: what reading a body takes.
    @discardableResult
    static func read(_ path: [CChar]) throws -> Int {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure(call: "open", errno: errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Failure(call: "fstat", errno: errno) }
        let size = Int(status.st_size)
        guard let buffer = malloc(max(1, size)) else { throw Failure(call: "malloc", errno: errno) }
        defer { free(buffer) }
        var done = 0
        while done < size {
            let count = Foundation.read(descriptor, buffer + done, size - done)
            guard count > 0 else { throw Failure(call: "read", errno: errno) }
            done += count
        }
        return done
    }

    static func failedOpen(_ path: [CChar]) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        if descriptor >= 0 { close(descriptor) }
    }

    /// create (O_EXCL) + write + close.
    static func write(_ bytes: Data, to path: [CChar]) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure(call: "open", errno: errno) }
        defer { close(descriptor) }
        let written = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
        guard written == bytes.count else { throw Failure(call: "write", errno: errno) }
    }

    static func remove(_ path: [CChar]) {
        unlink(path)
    }

    static func text(_ path: [CChar]) -> String {
        String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Every regular file under a directory.
    static func files(under directory: URL) -> [[CChar]] {
        walk(directory, stats: false).paths
    }

    /// readdir of every folder and stat of each file: the least that it takes to find out the size of a directory.
    @discardableResult
    static func readdirAndStat(_ directory: URL) -> (files: Int, bytes: Int) {
        let found = walk(directory, stats: true)
        return (found.count, found.allocated)
    }

    private static func walk(
        _ directory: URL, stats: Bool
    ) -> (paths: [[CChar]], count: Int, allocated: Int) {
        var paths: [[CChar]] = []
        var count = 0
        var allocated = 0
        var folders = [directory.path]
        while let folder = folders.popLast() {
            guard let stream = opendir(folder) else { continue }
            defer { closedir(stream) }
            let descriptor = dirfd(stream)
            while let entry = readdir(stream) {
                let type = Int32(entry.pointee.d_type)
                withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                    pointer.withMemoryRebound(to: CChar.self, capacity: 256) { name in
                        if type == Int32(DT_DIR) {
                            let text = String(cString: name)
                            if text != ".", text != ".." { folders.append("\(folder)/\(text)") }
                        } else if stats {
                            var status = stat()
                            if fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 {
                                allocated += Int(status.st_blocks) * 512
                                count += 1
                            }
                        } else {
                            paths.append(Array("\(folder)/\(String(cString: name))".utf8CString))
                            count += 1
                        }
                    }
                }
            }
        }
        return (paths, count, allocated)
    }
}
