/// What was done with one key, in an order of times that the test counts: what a lookup may find there, and what it
/// must.
struct KeyHistory {
    enum Kind: Equatable {
        case store(Int)
        case update, removal
    }

    struct Operation {
        var kind: Kind
        var began: Int
        /// `.max` if nobody knows how far it came.
        var ended = Int.max
        /// Which of several caches does it.
        var cache = 0
        /// By an answer to a load. A store began when the request was sent: a removal since then takes it, too, when
        /// the load has ended. Until then others than the remover may find it.
        var isOfALoad = false
    }

    /// In the order in which they began.
    private(set) var operations: [Operation] = []
    /// The cache that looks up, if it is known.
    private var reader: Int?

    mutating func append(_ operation: Operation) { operations.append(operation) }

    /// The last operation that began at this time has ended.
    mutating func end(_ began: Int, at time: Int) {
        guard let place = operations.lastIndex(where: { $0.began == began }) else { return }
        operations[place].ended = time
    }

    /// What is known of it if everything after `cut` never happened, and nobody knows how much of what happened after
    /// `certain` did.
    func cut(at cut: Int, certainUntil certain: Int) -> KeyHistory {
        var history = self
        history.operations = operations.filter { $0.began < cut }.map { operation in
            var operation = operation
            if operation.ended > certain { operation.ended = .max }
            return operation
        }
        return history
    }

    /// What a cache has to know that looked for changes by others at `time`, and not since: its own operations, and
    /// those of others that had ended.
    func seen(by cache: Int, at time: Int) -> KeyHistory {
        var history = self
        history.reader = cache
        history.operations = operations.map { operation in
            var operation = operation
            if operation.cache != cache, operation.ended >= time { operation.ended = .max }
            return operation
        }
        return history
    }

    /// Whether a lookup in this time may find a value: not before it was stored, nor after something else that began
    /// when it was there.
    func allows(_ value: Int, in time: Range<Int> = Int.max..<Int.max) -> Bool {
        guard let store = operations.first(where: { $0.kind == .store(value) }), store.began < time.upperBound else {
            return false
        }
        return !operations.contains {
            let takesAnswers = store.isOfALoad && (store.ended < time.lowerBound || $0.cache == reader)
            let wasThere = $0.began >= ($0.kind == .removal && takesAnswers ? store.began : store.ended)
            return $0.kind != .update && wasThere && $0.ended < time.lowerBound
        }
    }

    /// The value that must be found after all of it: stored last, and by itself.
    var required: Int? {
        let last = operations.last { $0.kind != .update || $0.ended == .max }
        guard let last, case .store(let value) = last.kind, last.ended != .max,
            !operations.contains(where: { $0.began < last.began && $0.ended > last.began })
        else { return nil }
        return value
    }
}
