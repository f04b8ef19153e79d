import Dispatch
import Foundation

/// A new file of the app that gets a body: under a name of its own in the same folder until the body is whole, so that
/// the app never sees a part of it.
///
/// For one writer at a time.
final class DestinationFile: Sendable {
    private let url: URL
    private let temporary: URL
    private let file: Int32
    private let replacesFile: Bool
    /// Whether the file still has its temporary name.
    private let isTemporary = Mutex(true)

    /// Makes the file, with the permissions that the process gives to its new files.
    /// - Parameter replacingFile: a file that is there at the end is replaced, in one step.
    /// - Throws: a `CocoaError`.
    init(_ url: URL, replacingFile: Bool) throws {
        guard url.isFileURL else { throw CocoaError(.fileWriteUnsupportedScheme, userInfo: [NSURLErrorKey: url]) }
        self.url = url
        replacesFile = replacingFile
        temporary = url.deletingLastPathComponent().appendingPathComponent(".\(UUID().uuidString).partial")
        var status = stat()
        if !replacingFile, lstat(url.path, &status) == 0 { throw Self.error(EEXIST, url) }
        file = openat(AT_FDCWD, temporary.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        if file < 0 { throw Self.error(errno, url) }
    }

    deinit {
        _ = close(file)
        if isTemporary.withLock({ $0 }) { _ = unlink(temporary.path) }
    }

    /// Appends a piece, on a queue where the disk may be slow.
    func append(_ part: Body) async throws {
        let failure = await withCheckedContinuation { continuation in
            Self.queue.async { [self] in continuation.resume(returning: write(part)) }
        }
        if let failure { throw Self.error(failure, url) }
    }

    private static let queue = DispatchQueue(label: "DiskURLCache.destination", attributes: .concurrent)

    /// Returns the system's error number if that fails.
    private func write(_ part: Body) -> Int32? {
        switch part {
        case .file(let body): return body.copy(to: file)
        case .memory(let data):
            do throws(Errno) {
                try SystemFiles().writeFully(file, data)
                return nil
            } catch {
                return error.code
            }
        }
    }

    /// The body is whole: the file gets its name. If another file has it by now, that one is replaced, or it is an
    /// error.
    func publish() throws {
        if replacesFile {
            if rename(temporary.path, url.path) != 0 { throw Self.error(errno, url) }
        } else if link(temporary.path, url.path) != 0 {
            // Unlike a renaming, a link replaces no file.
            if errno == EEXIST { throw Self.error(EEXIST, url) }
            // A file system without links.
            try FileManager.default.moveItem(at: temporary, to: url)
        } else {
            _ = unlink(temporary.path)
        }
        isTemporary.withLock { $0 = false }
    }

    /// The error as Foundation's own functions for files throw it.
    static func error(_ code: Int32, _ url: URL) -> CocoaError {
        let kind: CocoaError.Code =
            switch code {
            case EEXIST, EISDIR: .fileWriteFileExists
            case ENOENT, ENOTDIR: .fileNoSuchFile
            case EACCES, EPERM: .fileWriteNoPermission
            case EROFS: .fileWriteVolumeReadOnly
            case ENOSPC, EDQUOT: .fileWriteOutOfSpace
            case ENAMETOOLONG, EINVAL: .fileWriteInvalidFileName
            default: .fileWriteUnknown
            }
        let underlying = NSError(domain: NSPOSIXErrorDomain, code: Int(code))
        return CocoaError(kind, userInfo: [NSFilePathErrorKey: url.path, NSUnderlyingErrorKey: underlying])
    }
}
