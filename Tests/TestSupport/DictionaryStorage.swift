import DiskURLCache
import DiskURLCacheAdapters
import Foundation

/// A storage as an app might write it.
public final class DictionaryStorage: DiskURLCache.EntryStorage {
    /// Called once, just before the next change.
    public let beforeNextChange = Guarded<(@Sendable () -> Void)?>(nil)
    /// Called once, just after the next change.
    public let afterNextChange = Guarded<(@Sendable () -> Void)?>(nil)
    /// How often capacity or usage were asked for.
    public let sizeQuestions = Guarded(0)
    public let isForSeveralUsers: Bool

    private func announce(_ box: Guarded<(@Sendable () -> Void)?>) {
        let announce = box.withLock { announce in
            defer { announce = nil }
            return announce
        }
        announce?()
    }

    private struct State {
        var entries: [String: [(entry: DiskURLCache.Entry, stamp: Int)]] = [:]
        var stamp = 0
        var capacity: Int

        var usage: Int { entries.values.joined().reduce(0) { $0 + $1.entry.bytesInMemory } }
    }

    private let state: Guarded<State>

    public init(capacity: Int, isForSeveralUsers: Bool = false) {
        state = Guarded(State(capacity: capacity))
        self.isForSeveralUsers = isForSeveralUsers
    }

    public var all: [DiskURLCache.Entry] { state.withLock { $0.entries.values.joined().map(\.entry) } }
    public var count: Int { all.count }

    public func entries(named name: String) -> [DiskURLCache.Entry]? {
        state.withLock { $0.entries[name, default: []].map(\.entry) }
    }

    public func store(_ entry: DiskURLCache.Entry, named name: String) {
        announce(beforeNextChange)
        defer { announce(afterNextChange) }
        state.withLock { state in
            state.stamp += 1
            state.entries[name, default: []].removeAll { $0.entry.variant == entry.variant }
            state.entries[name, default: []].append((entry, state.stamp))
            while state.usage > state.capacity {
                guard
                    let oldest = state.entries.min(by: { ($0.value.first?.stamp ?? 0) < ($1.value.first?.stamp ?? 0) })
                else { return }
                state.entries[oldest.key] = nil
            }
        }
    }

    public func removeEntries(matching criteria: DiskURLCache.Criteria) {
        announce(beforeNextChange)
        defer { announce(afterNextChange) }
        state.withLock { state in
            for name in state.entries.keys { state.entries[name]?.removeAll { criteria.matches($0.entry) } }
        }
    }

    public var capacity: Int {
        sizeQuestions.withLock { $0 += 1 }
        return state.withLock { $0.capacity }
    }

    public var usage: Int {
        sizeQuestions.withLock { $0 += 1 }
        return state.withLock { $0.usage }
    }

    public func flush() {}
}
