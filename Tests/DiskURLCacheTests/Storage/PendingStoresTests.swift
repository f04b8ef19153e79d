import Foundation
import Testing

@testable import DiskURLCache

@Suite struct PendingStoresTests {
    private func key(_ name: String) -> RequestKey {
        RequestKey(text: "https://example.org/\(name)", uri: nil, isForHead: false)
    }

    /// What was carried out, in order.
    private final class Log: Sendable {
        private let entries = Mutex<[String]>([])

        func note(_ entry: String) { entries.withLock { $0.append(entry) } }

        var all: [String] { entries.withLock { $0 } }
    }

    @Test func whatIsPendingForAKeyIsDoneBeforeTheKeyIsLookedAt() {
        let pending = PendingStores(mark: { _, _ in })
        let log = Log()
        for round in 0..<200 {
            #expect(pending.add(key("a"), weight: 1) { log.note("\(round)") })
            pending.settle(key("a"))
            #expect(log.all.count == round + 1)
        }
    }

    @Test func twoStoresOfOneKeyAreBothCarriedOut() {
        let pending = PendingStores(mark: { _, _ in })
        let log = Log()
        for name in ["one", "two", "three"] { #expect(pending.add(key("a"), weight: 1) { log.note(name) }) }
        pending.settleAll()
        #expect(log.all == ["one", "two", "three"])
    }

    @Test func whatIsAddedMeanwhileComesAfterwards() {
        let pending = PendingStores(mark: { _, _ in })
        let log = Log()
        let key = key("a")
        let (begun, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let isKept = pending.add(key, weight: 1) {
            begun.signal()
            go.wait()
            // As the layers do: this must not let the second go first.
            pending.settle(key)
            log.note("first")
        }
        #expect(isKept)
        begun.wait()
        #expect(pending.add(key, weight: 1) { log.note("second") })
        go.signal()
        pending.settle(key)
        #expect(log.all == ["first", "second"])
    }

    @Test func settlingWaitsForWhatIsUnderWay() {
        let pending = PendingStores(mark: { _, _ in })
        let log = Log()
        let (begun, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        #expect(
            pending.add(key("a"), weight: 1) {
                begun.signal()
                go.wait()
                log.note("done")
            })
        begun.wait()
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.05) { go.signal() }
        pending.settleAll()
        #expect(log.all == ["done"])
    }

    @Test func whatDoesNotFitIsRefused() {
        let pending = PendingStores(mark: { _, _ in })
        let log = Log()
        #expect(!pending.add(key("a"), weight: 5 << 20) { log.note("too heavy") })
        // The queue is busy with the first, so the others wait until there is no more room.
        let (begun, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        #expect(
            pending.add(key("first"), weight: 1) {
                begun.signal()
                go.wait()
            })
        begun.wait()
        var kept = 0
        while kept < 10_000, pending.add(key("\(kept)"), weight: 1, { log.note("kept") }) { kept += 1 }
        #expect(kept < 10_000)
        go.signal()
        pending.settleAll()
        #expect(log.all.count == kept)
        #expect(pending.add(key("again"), weight: 1) {})
    }

    @Test func discardedStoresAreNotCarriedOut() {
        let pending = PendingStores(mark: { _, _ in })
        let log = Log()
        let (begun, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        #expect(
            pending.add(key("first"), weight: 1) {
                begun.signal()
                go.wait()
                log.note("first")
            })
        begun.wait()
        for number in 0..<100 { #expect(pending.add(key("\(number)"), weight: 1) { log.note("late") }) }
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.05) { go.signal() }
        // Waits for the one under way: what it does comes before what the caller does next.
        pending.discardAll()
        #expect(log.all == ["first"])
        pending.settleAll()
        #expect(log.all == ["first"])
    }

    @Test func aKeyIsMarkedAsLongAsSomethingIsPendingForIt() {
        let marked = Mutex<Set<String>>([])
        let pending = PendingStores { key, isPending in
            marked.withLock { if isPending { $0.insert(key.text) } else { $0.remove(key.text) } }
        }
        let key = key("a")
        let (begun, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let isKept = pending.add(key, weight: 1) {
            begun.signal()
            go.wait()
        }
        #expect(isKept)
        begun.wait()
        #expect(marked.withLock { $0.contains(key.text) })
        go.signal()
        pending.settleAll()
        #expect(marked.withLock { $0.isEmpty })
    }

    @Test func theWorkMayLookAtItsOwnKey() {
        let pending = PendingStores(mark: { _, _ in })
        let log = Log()
        let key = key("a")
        #expect(
            pending.add(key, weight: 1) {
                pending.settle(key)
                log.note("done")
            })
        pending.settle(key)
        #expect(log.all == ["done"])
    }

    @Test func nothingIsLostBetweenThreads() {
        let pending = PendingStores(mark: { _, _ in })
        let log = Log()
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for step in 0..<2_000 {
                let work: @Sendable () -> Void = { log.note("\(thread) \(step)") }
                if !pending.add(key("\(step % 7)"), weight: 100_000, work) { work() }
                if step % 3 == 0 { pending.settle(key("\(step % 5)")) }
            }
        }
        pending.settleAll()
        #expect(Set(log.all).count == 8_000)
        #expect(log.all.count == 8_000)
    }
}
