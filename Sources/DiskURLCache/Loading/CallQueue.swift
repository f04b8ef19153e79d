import Foundation

/// The calls of a load to a client that takes them at its own pace: in order, with a pause and an end. A value; its owner has
/// the lock.
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

    /// A fast answer adds tens of thousands of calls before its head is delivered, so the first call is taken without moving the
    /// others.
    mutating func next() -> LoadCall? {
        guard !isPaused, start < calls.count, let call = calls[start] else { return nil }
        calls[start] = nil
        start += 1
        if start == calls.count || start > 1_024 && start * 2 > calls.count {
            calls.removeFirst(start)
            start = 0
        }
        if case .load(let data) = call { undeliveredBytes -= data.count }
        return call
    }

    /// The rest of a body comes next.
    mutating func putBack(_ body: OpenBody) {
        guard !isClosed, !body.isEmpty else { return }
        if start > 0 {
            start -= 1
            calls[start] = .read(body)
        } else {
            calls.insert(.read(body), at: 0)
        }
    }

    mutating func close() {
        self = CallQueue()
        isClosed = true
    }
}
