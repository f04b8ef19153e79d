import Foundation

/// The body of an answer while it arrives: in memory, and from a megabyte on in a file if it is to be stored on disk.
///
/// Takes pieces from one thread at a time; may be discarded from another one.
final class GatheredBody: Sendable {
    private struct State {
        /// Of all pieces.
        var count = 0
        var data = Data()
        /// Used instead of `data`.
        var file: IncomingBody?
        /// The rules may still put the body into a file.
        var mayUseFile: Bool
        /// A longer body is not stored.
        var limit: Int
        /// Why the body is not stored: it is too large, or the disk failed.
        var refusal: DiskURLCache.Reason?
        /// No more pieces are kept.
        var isDiscarded = false

        mutating func keep(_ piece: Data) {
            // The pieces of a body are copied into one place. A body of one piece is not copied.
            if data.isEmpty, data.count + piece.count == count { data = piece } else { data.append(piece) }
        }
    }

    private let cache: CacheCore
    private let hop: ResolvedRequest
    /// Nil for a body that is gathered to be delivered.
    private let storing: StoredResponse?
    /// As the head gives it; 0 if it does not.
    private let length: Int
    private let state: Mutex<State>
    /// Those that the body is compared with; nil if there are none.
    private let digests: Mutex<BodyDigests>?

    init(
        storing: StoredResponse?, length: Int?, digests: BodyDigests? = nil, for hop: ResolvedRequest,
        in cache: CacheCore
    ) {
        (self.cache, self.hop, self.storing, self.length) = (cache, hop, storing, length ?? 0)
        self.digests = digests.map { Mutex($0) }
        let limit = storing == nil ? .max : cache.store.largestStorableBody
        state = Mutex(State(mayUseFile: storing != nil, limit: limit))
        if self.length > limit { _ = giveUp(.tooLarge(bytes: self.length, limit: limit)) }
    }

    /// Why the body is no longer to be stored.
    var refusal: DiskURLCache.Reason? { state.withLock { $0.refusal } }

    var data: Data { state.withLock { $0.data } }

    /// After the end.
    var content: Result<ArrivedBody, DiskURLCache.Reason> {
        state.withLock { state in
            if let refusal = state.refusal { return .failure(refusal) }
            return .success(state.file.map { .file($0) } ?? .memory(state.data))
        }
    }

    /// Which digest the body contradicts; nil if none. After the end.
    var wrongDigest: String? { digests?.withLock { $0.contradiction } }

    /// Takes the next piece.
    /// - Returns: why the body is not stored, if this piece decided that.
    func append(_ piece: Data) -> DiskURLCache.Reason? {
        digests?.withLock { $0.update(piece) }
        let (count, limit, isForFile) = state.withLock { state in
            state.count += state.isDiscarded ? 0 : piece.count
            let isLarge = max(state.count, length) > TieredStore.gatheringLimit
            let isForFile = state.file != nil || state.mayUseFile && isLarge
            if !state.isDiscarded, !isForFile, state.count <= state.limit { state.keep(piece) }
            return (state.count, state.limit, isForFile && !state.isDiscarded)
        }
        if count > limit { return giveUp(.tooLarge(bytes: count, limit: limit)) }
        return isForFile ? write(piece) : nil
    }

    private func write(_ piece: Data) -> DiskURLCache.Reason? {
        let (before, beginning) = state.withLock { ($0.file, $0.data) }
        var file = before
        // A rule decides, so this is not under the lock.
        guard let storing, file != nil || cache.acceptsFile(storing, for: hop) else {
            return keepInMemory(piece, limit: nil)
        }
        guard let failure = cache.store.append(beginning.isEmpty ? piece : beginning + piece, to: &file) else {
            let unused = state.withLock { state -> IncomingBody? in
                guard !state.isDiscarded else { return file }
                (state.file, state.data) = (file, Data())
                return nil
            }
            unused?.discard()
            return nil
        }
        // If the disk fails, a body that memory may keep continues in memory.
        defer { file?.discard() }
        let limit = cache.store.largestMemoryEntry
        if let written = before?.opening.contents { state.withLock { ($0.file, $0.data) = (nil, written) } }
        let (count, isWhole) = state.withLock { ($0.count, $0.data.count + piece.count == $0.count) }
        return isWhole && count <= limit ? keepInMemory(piece, limit: limit) : giveUp(failure)
    }

    private func keepInMemory(_ piece: Data, limit: Int?) -> DiskURLCache.Reason? {
        state.withLock { state in
            guard !state.isDiscarded else { return }
            (state.file, state.mayUseFile) = (nil, false)
            state.limit = limit ?? state.limit
            state.keep(piece)
        }
        return nil
    }

    private func giveUp(_ reason: DiskURLCache.Reason) -> DiskURLCache.Reason {
        state.withLock { $0.refusal = reason }
        discard()
        return reason
    }

    /// Reads the whole body so far, also once it is stored or discarded. If its file cannot be read, the body is given
    /// up.
    var reader: @Sendable () -> Data {
        let (file, data) = state.withLock { ($0.file, $0.data) }
        guard let opening = file?.opening else { return { data } }
        return { [self] in
            // The process would crash on a mapped file that is cut or cannot be read, so the file is read.
            if let contents = opening.contents { return contents }
            _ = giveUp(.diskFailed(errno: EIO))
            return Data()
        }
    }

    /// Drops the body and removes its file.
    func discard() {
        let file = state.withLock { state in
            defer { (state.file, state.data, state.isDiscarded) = (nil, Data(), true) }
            return state.file
        }
        file?.discard()
    }
}
