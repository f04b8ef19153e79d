import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The body of an answer while it arrives: in memory, and from a megabyte on in a file if it is to be stored on disk.
///
/// Takes pieces from one thread at a time; may be discarded from another one.
final class GatheredBody: Sendable {
    /// A body after its end.
    enum Content {
        case arrived(ArrivedBody)
        /// It is not stored: too large, or the disk failed.
        case givenUp(DiskURLCache.Reason)
    }

    private struct State {
        /// Of all pieces.
        var count = 0
        var data = Data()
        /// Used instead of `data`.
        var file: IncomingBody?
        var refusal: DiskURLCache.Reason?
        /// A longer body is not stored.
        var limit = Int.max
        /// The body may go to a file; nil until the rules have decided.
        var takesFile: Bool?
        var isDiscarded = false
    }

    private let cache: any LoadHost
    /// Nil for a body that is gathered to be delivered.
    private let storing: (response: StoredResponse, request: URLRequest)?
    private let state = Mutex(State())

    /// In bytes: the first piece of a body of unknown length reserves no more memory.
    private static let reservedLength = 256 << 10

    init(_ gathering: LoadMachine.Gathering, in cache: any LoadHost) {
        self.cache = cache
        switch gathering {
        case .delivery:
            storing = nil
            state.withLock { $0.takesFile = false }
        case .storage(let response, let hop, let length):
            storing = (response, hop.request)
            let limit = cache.largestStorableBody
            let isLarge = length.map { $0 > TieredStore.gatheringLimit } == true
            let takesFile = isLarge ? cache.takesFile(response, for: hop.request) : nil
            state.withLock { state in
                state.limit = limit
                state.takesFile = takesFile
                guard let length else { return }
                if length > limit {
                    state.refusal = .tooLarge(bytes: length, limit: limit)
                } else if takesFile != true {
                    // So that the body is not moved as it grows. The head may be wrong, so it does not reserve the whole of a large body.
                    state.data.reserveCapacity(min(max(0, length), Self.reservedLength))
                }
            }
        }
    }

    /// Whether the body is no longer to be stored.
    var isGivenUp: Bool { state.withLock { $0.refusal != nil } }

    var data: Data { state.withLock { $0.data } }

    var content: Content {
        state.withLock { state in
            switch (state.refusal, state.file) {
            // More bytes may have come since.
            case (let refusal?, _) where refusal == .tooLarge:
                .givenUp(.tooLarge(bytes: state.count, limit: state.limit))
            case (let refusal?, _): .givenUp(refusal)
            case (nil, let file?): .arrived(.file(file))
            case (nil, nil): .arrived(.memory(state.data))
            }
        }
    }

    /// Takes the next piece.
    /// - Returns: why the body is not stored, if this piece decided that.
    func append(_ piece: Data) -> DiskURLCache.Reason? {
        let (refusal, asks) = state.withLock { state -> (DiskURLCache.Reason?, Bool) in
            state.count += piece.count
            guard state.refusal == nil, !state.isDiscarded else { return (nil, false) }
            if state.count > state.limit { return (.tooLarge(bytes: state.count, limit: state.limit), false) }
            return (nil, state.takesFile == nil && state.count > TieredStore.gatheringLimit)
        }
        if let refusal { return giveUp(refusal) }
        if asks, let storing {
            // A rule decides, so this is not under the lock.
            let takesFile = cache.takesFile(storing.response, for: storing.request)
            state.withLock { $0.takesFile = takesFile }
        }
        let (file, beginning) = state.withLock { state -> (IncomingBody?, Data?) in
            guard state.refusal == nil, !state.isDiscarded else { return (nil, nil) }
            if let file = state.file { return (file, piece) }
            if state.data.isEmpty, state.takesFile != nil { state.data = piece } else { state.data.append(piece) }
            guard state.takesFile == true else { return (nil, nil) }
            defer { state.data = Data() }
            return (nil, state.data)
        }
        return beginning.flatMap { write($0, to: file) }
    }

    /// - Parameter file: nil for the first piece.
    private func write(_ piece: Data, to file: IncomingBody?) -> DiskURLCache.Reason? {
        var file = file
        let before = file?.count ?? 0
        guard let failure = cache.append(piece, to: &file) else {
            let isDiscarded = state.withLock { state in
                if !state.isDiscarded { state.file = file }
                return state.isDiscarded
            }
            if isDiscarded { file?.discard() }
            return nil
        }
        defer { file?.discard() }
        // If the disk fails, a body that memory may keep continues in memory.
        let limit = cache.largestMemoryEntry
        guard before + piece.count <= limit,
            let whole = before == 0 ? piece : file?.opening.contents.map({ $0 + piece })
        else { return giveUp(failure) }
        state.withLock { state in
            (state.file, state.takesFile) = (nil, false)
            if !state.isDiscarded { (state.data, state.limit) = (whole, limit) }
        }
        return nil
    }

    private func giveUp(_ reason: DiskURLCache.Reason) -> DiskURLCache.Reason {
        state.withLock { $0.refusal = reason }
        discard()
        return reason
    }

    /// The whole body so far, in memory; nil when a file cannot be read.
    var contents: Data? {
        // The process would crash on a mapped file that is cut or cannot be read, so the file is read.
        let (file, data) = state.withLock { ($0.file, $0.data) }
        return file.map { $0.opening.contents } ?? data
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

extension LoadMachine.EditedResponse {
    /// Whether the delegate and the app left the shown body unchanged: then the gathered body, in its file, is stored.
    mutating func compareBody(with shown: Data) {
        guard let edited = data else { return }
        // A part of the shown body that stays in memory is copied, so that the rest can be released.
        data = edited == shown && !isMemoryOnly && presented == nil ? nil : Data(Array(edited))
    }
}
