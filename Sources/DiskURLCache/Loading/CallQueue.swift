import Foundation

/// The calls of a load to a client that takes them at its own pace: in order, with a pause and an end. A value; its
/// owner has the lock.
struct CallQueue {
    /// A load has a few: its pieces wait in their body.
    private var calls: [LoadCall] = []
    /// While true, there is no next call: the client's task is suspended.
    var isPaused = false
    var isEmpty: Bool { calls.isEmpty }
    /// No call is taken or added any more.
    private(set) var isClosed = false

    mutating func append(_ call: LoadCall) {
        if !isClosed { calls.append(call) }
    }

    /// The next call. Of a body that arrives, or is in a file, the next piece: `.read` if that is still in the file.
    mutating func next() -> LoadCall? {
        guard !isPaused, let call = calls.first else { return nil }
        switch call {
        case .read(let body) where body.count > OpenBody.pieceLength:
            calls[0] = .read(body.part(OpenBody.pieceLength..<body.count))
            return .read(body.part(0..<OpenBody.pieceLength))
        case .stream(let body):
            switch body.next() {
            case .piece(let data): return .load(data)
            case .file(let part): return .read(part)
            case .later: return nil
            case .end:
                calls.removeFirst()
                return next()
            }
        case .receive, .load, .read, .confirmStorage, .finish, .fail:
            return calls.removeFirst()
        }
    }

    /// Makes this call the next one.
    mutating func putBack(_ call: LoadCall) {
        if !isClosed { calls.insert(call, at: 0) }
    }

    mutating func close() {
        self = CallQueue()
        isClosed = true
    }
}
