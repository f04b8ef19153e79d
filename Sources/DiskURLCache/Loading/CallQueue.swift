import Foundation

/// The calls of a load to a client that takes them at its own pace: in order, with a pause and an end. A value; its
/// owner has the lock.
struct CallQueue {
    private var calls: [LoadCall?] = []
    private var start = 0
    /// Bytes of pieces in memory that the client has not taken yet. A body in a file takes none.
    private(set) var undeliveredBytes = 0
    /// The client takes no calls meanwhile.
    var isPaused = false
    /// No call is taken or added any more.
    private(set) var isClosed = false

    mutating func append(_ call: LoadCall) {
        guard !isClosed else { return }
        if case .load(let data) = call { undeliveredBytes += data.count }
        calls.append(call)
    }

    /// Of a body in a file the next piece, still in its file.
    ///
    /// A fast answer adds tens of thousands of calls before its head is delivered, so the first call is taken without
    /// moving the others.
    mutating func next() -> LoadCall? {
        guard !isPaused, start < calls.count, let call = calls[start] else { return nil }
        if case .read(let body) = call, body.count > OpenBody.pieceLength {
            calls[start] = .read(body.part(OpenBody.pieceLength..<body.count))
            return .read(body.part(0..<OpenBody.pieceLength))
        }
        calls[start] = nil
        start += 1
        if start == calls.count || start > 1_024 && start * 2 > calls.count {
            calls.removeFirst(start)
            start = 0
        }
        if case .load(let data) = call { undeliveredBytes -= data.count }
        return call
    }

    mutating func close() {
        self = CallQueue()
        isClosed = true
    }
}
