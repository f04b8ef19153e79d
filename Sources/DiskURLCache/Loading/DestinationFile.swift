import Dispatch
import Foundation

/// A new file of the app that gets a body: under a name of its own in the same folder until the body is whole, so that
/// the app never sees a part of it. For a download that may go on later, that name is made of the target's, and a file
/// beside it says of which response it has the beginning (`DownloadPart`).
///
/// For one writer at a time.
final class DestinationFile: Sendable {
    /// Guarded by the lock around it.
    private struct State {
        /// Whether the file still has its temporary name.
        var isTemporary = true
        var isOpen = true
        /// What stays if the download breaks off; nil if nothing does.
        var part: DownloadPart?
        var length = 0
    }

    private let url: URL
    private let temporary: URL
    private let file: Int32
    private let replacesFile: Bool
    /// Whether this is the one file of the target that a later download finds.
    let isResumable: Bool
    private let state = Mutex(State())

    /// Makes the file, with the permissions that the process gives to its new files.
    /// - Parameters:
    ///   - replacingFile: a file that is there at the end is replaced, in one step.
    ///   - resuming: opens what an earlier download has left; see `part(of:)`.
    /// - Throws: a `CocoaError`.
    init(_ url: URL, replacingFile: Bool, resuming: Bool = false) throws {
        guard url.isFileURL else { throw CocoaError(.fileWriteUnsupportedScheme, userInfo: [NSURLErrorKey: url]) }
        self.url = url
        replacesFile = replacingFile
        var status = stat()
        if lstat(url.path, &status) == 0, !replacingFile || status.st_mode & S_IFMT == S_IFDIR {
            throw Self.error(EEXIST, url)
        }
        let folder = url.deletingLastPathComponent()
        let kept = folder.appendingPathComponent(".\(url.lastPathComponent).partial")
        if resuming, let opened = Self.openPart(kept.path) {
            (temporary, file, isResumable) = (kept, opened, true)
            return
        }
        temporary = folder.appendingPathComponent(".\(UUID().uuidString).partial")
        isResumable = false
        file = openat(AT_FDCWD, temporary.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        if file < 0 { throw Self.error(errno, url) }
    }

    deinit { close() }

    /// Nothing is written any more. What is not published, and is no part that stays, is deleted. Called where the
    /// download ends: the lock of a part must not outlive that until the last reference is released.
    func close() {
        let (isOpen, isKept, isTemporary) = state.withLock { state in
            defer { state.isOpen = false }
            return (state.isOpen, state.part != nil && state.length > 0, state.isTemporary)
        }
        guard isOpen else { return }
        if isTemporary, !isKept {
            if isResumable { _ = unlink(description.path) }
            _ = unlink(temporary.path)
        }
        // A child process that the app is just making has the file, too, until it runs its program.
        _ = flock(file, LOCK_UN)
        SystemFiles().closeQuietly(file)
    }

    /// Appends a piece.
    func append(_ part: Body) async throws {
        try await onQueue { file throws(Errno) in
            switch part {
            case .file(let body): if let failure = body.copy(to: file.file) { throw Errno(failure) }
            case .memory(let data): try SystemFiles().writeFully(file.file, data)
            }
            file.note(part.count)
        }
    }

    /// Gets the whole body and its name. An error of the server takes the place of no file that is there.
    func take(_ stream: DiskURLCache.ResponseStream) async throws {
        if replacesFile, stream.delivered.status >= 400, access(url.path, F_OK) == 0 {
            for try await _ in stream {}
        } else {
            try await stream.write(to: self)
        }
    }

    /// Works on a queue where the disk may be slow.
    private func onQueue(_ work: @escaping @Sendable (DestinationFile) throws(Errno) -> Void) async throws {
        let failure = await withCheckedContinuation { continuation in
            Self.queue.async { [self] in
                do throws(Errno) {
                    try work(self)
                    continuation.resume(returning: nil as Errno?)
                } catch {
                    continuation.resume(returning: error)
                }
            }
        }
        if let failure { throw Self.error(failure.code, url) }
    }

    private static let queue = DispatchQueue(label: "DiskURLCache.destination", attributes: .concurrent)

    // MARK: A download that goes on

    /// After so many bytes the system is asked to write them, so that a download whose process is killed, or whose
    /// machine fails, goes on from there.
    private static let checkpoint = 16 << 20

    /// The file that says what the part is.
    private var description: URL { temporary.appendingPathExtension("json") }

    /// Opens the file that an earlier download of the target has left, or makes it. Nil if another download writes it
    /// now, or if it is no file of this user alone.
    private static func openPart(_ path: String) -> Int32? {
        let file = openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o666)
        guard file >= 0 else { return nil }
        var (opened, named) = (stat(), stat())
        let isOurs =
            flock(file, LOCK_EX | LOCK_NB) == 0 && fstat(file, &opened) == 0
            && opened.st_mode & S_IFMT == S_IFREG && opened.st_uid == geteuid()
            // Its last writer may have given it the name of the target before it was locked.
            && lstat(path, &named) == 0 && named.st_ino == opened.st_ino && opened.st_nlink == 1
        if isOurs { return file }
        SystemFiles().closeQuietly(file)
        return nil
    }

    /// What an earlier download of this resource has left; nil if there is nothing to go on with.
    func part(of resource: String) -> DownloadPart? {
        var status = stat()
        guard isResumable, let data = try? Data(contentsOf: description),
            var part = try? JSONDecoder().decode(DownloadPart.self, from: data), part.resource == resource,
            fstat(file, &status) == 0, part.count <= status.st_size, part.length ?? 1 > 0
        else { return nil }
        // If only the name was missing, the last byte is asked for again.
        if let length = part.length { part.count = min(part.count, length - 1) }
        guard part.count > 0 else { return nil }
        // It stays if there is no answer, or an error.
        state.withLock { [part] in ($0.part, $0.length) = (part, part.count) }
        return part
    }

    /// Begins to write: behind the bytes of a part, or an empty file.
    /// - Parameter part: what is to stay if the download breaks off; nil for nothing.
    func begin(_ part: DownloadPart?) async throws {
        let count = part?.count ?? 0
        state.withLock { ($0.part, $0.length) = (part, count) }
        try await onQueue { file throws(Errno) in
            // What is described must not be that of another response.
            if count == 0 { _ = unlink(file.description.path) }
            guard ftruncate(file.file, off_t(count)) == 0, lseek(file.file, off_t(count), SEEK_SET) >= 0 else {
                throw Errno.last
            }
        }
    }

    private func note(_ bytes: Int) {
        let isDue = state.withLock { state in
            state.length += bytes
            return state.part.map { state.length - $0.count >= Self.checkpoint } ?? false
        }
        if isDue { keepPart() }
    }

    /// The download has broken off: what has come stays.
    func keep() async { try? await onQueue { file throws(Errno) in file.keepPart() } }

    /// Notes how much the file has for certain. If that fails, the next download begins earlier.
    private func keepPart() {
        let (kept, length) = state.withLock { ($0.part, $0.length) }
        guard var part = kept else { return }
        part.count = length
        guard length > 0, fsync(file) == 0, let data = try? JSONEncoder().encode(part) else { return }
        state.withLock { $0.part = part }
        let new = description.appendingPathExtension("new")
        _ = unlink(new.path)
        let opened = openat(AT_FDCWD, new.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard opened >= 0 else { return }
        defer { SystemFiles().closeQuietly(opened) }
        guard (try? SystemFiles().writeFully(opened, data)) != nil else { return }
        _ = rename(new.path, description.path)
    }

    /// Of all that is written, in bytes.
    var length: Int { state.withLock { $0.length } }

    /// The bytes of the whole, in pieces; false if they cannot be read. On the caller's thread.
    func read(_ body: (Data) throws -> Void) rethrows -> Bool {
        var position = 0
        while position < length {
            let piece = try? SystemFiles().bytes(of: file, at: position, count: min(1 << 20, length - position))
            guard let piece, !piece.isEmpty else { return false }
            try body(Data(piece))
            position += piece.count
        }
        return true
    }

    /// Another file for the same target, which leaves this one as it is.
    func sibling() throws -> DestinationFile { try DestinationFile(url, replacingFile: replacesFile) }

    /// The body is whole: the file gets its name. If another file has it by now, that one is replaced, or it is an
    /// error.
    func publish() throws {
        do {
            try giveName()
        } catch {
            // A later download has only its end to ask for.
            keepPart()
            throw error
        }
        // Last: until the file has its name, a later download can go on with it. A description that stays all the same
        // is of no file, and is refused.
        if isResumable { _ = unlink(description.path) }
        state.withLock { $0.isTemporary = false }
    }

    private func giveName() throws {
        if replacesFile {
            if rename(temporary.path, url.path) != 0 { throw Self.error(errno, url) }
        } else if link(temporary.path, url.path) != 0 {
            // Unlike a renaming, a link replaces no file. What nobody can go on with does not stay.
            if errno == EEXIST {
                state.withLock { $0.part = nil }
                throw Self.error(EEXIST, url)
            }
            // A file system without links.
            try FileManager.default.moveItem(at: temporary, to: url)
        } else {
            _ = unlink(temporary.path)
        }
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
