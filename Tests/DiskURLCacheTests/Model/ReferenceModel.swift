import Foundation

@testable import DiskURLCache

/// What a script did so far, and by that which answers are allowed.
///
/// Each thing that happens has a time: the number of a step of one counter, taken before a call and after it. The model
/// says "not allowed" only where the order of two things is certain: one had ended before the other began.
///
/// An answer carries the number of the item that it is (`X-Token`, and the body's first word), and the number of the
/// exchange that validated it last (`X-Check`).
final class ReferenceModel: Sendable {
    /// Guarded by the lock around it.
    struct State {
        var time = 0
        var items: [Int: ModelItem] = [:]
        var removals: [ModelRemoval] = []
        /// What was marked as stale.
        var marks: [ModelRemoval] = []
        /// By the load that asked: when the origin took an unsafe request, and would answer with 2xx.
        var invalidations: [Int: (path: String, time: Int)] = [:]
        /// When processes were killed.
        var kills: [Int] = []
        var flushes: [Range<Int>] = []
        /// Whether memory was emptied, or is too small for all.
        var forgets = false
        /// Loads whose request the origin answered with an error or not at all, on purpose.
        var failedPaths: [(path: String, time: Int)] = []
        var loads: [Int: ModelLoad] = [:]
        var trace: [String] = []
        var violations: [String] = []

        mutating func tick() -> Int {
            time += 1
            return time
        }

        /// Whether the origin was told to fail a request that the load may have made.
        func mayFail(_ load: ModelLoad) -> Bool {
            failedPaths.contains {
                ($0.path == load.path || load.path == ModelOrigin.redirecting) && $0.time > load.begin
            }
        }

        mutating func note(_ text: String) { trace.append("\(time): \(text)") }
    }

    private let state = Mutex(State())
    let clock = ModelClock()

    func change<Result>(_ body: (inout State) -> Result) -> Result { state.withLock { body(&$0) } }

    var violation: String? { state.withLock { $0.violations.first } }

    /// What happened, as far as it concerns a path.
    func trace(of path: String?) -> [String] {
        state.withLock { state in
            state.trace.filter { line in
                guard let path else { return true }
                return line.contains(path) || (line.contains("*") && !line.contains(" for "))
            }
        }
    }

    func fail(_ text: String) {
        state.withLock { state in
            state.note("* NOT ALLOWED: \(text)")
            state.violations.append(text)
        }
    }

    // MARK: What happens

    func beginLoad(_ load: ModelLoad) -> ModelLoad {
        let seconds = clock.seconds
        return state.withLock { state in
            var load = load
            load.begin = state.tick()
            load.beginSeconds = seconds
            load.number = state.loads.count + 1
            state.loads[load.number] = load
            state.note("load \(load.number) begins: \(load.description)")
            return load
        }
    }

    /// An item that the origin answers with, or that is stored by hand from now on.
    func add(_ make: (Int) -> ModelItem) -> ModelItem {
        let seconds = clock.seconds
        return state.withLock { state in
            var item = make(state.items.count + 1)
            item.born = state.tick()
            item.bornSeconds = seconds
            // What is stored by hand is asked for by nobody.
            item.askerBegan = item.asker.flatMap { state.loads[$0]?.begin } ?? item.born
            state.items[item.number] = item
            state.note("\(item.description)")
            return item
        }
    }

    func setVisible(_ number: Int) {
        state.withLock { state in
            let time = state.tick()
            if state.items[number]?.visible == nil { state.items[number]?.visible = time }
        }
    }

    func remove(_ scope: ModelRemoval.Scope, by process: Int = 0, _ body: () -> Void) {
        note(scope, by: process, in: \.removals, "removes", "has removed", body)
    }

    func markStale(_ scope: ModelRemoval.Scope, _ body: () -> Void) {
        note(scope, by: 0, in: \.marks, "marks", "has marked", body)
    }

    /// A call that takes a while: its begin and its end are noted.
    private func note(
        _ scope: ModelRemoval.Scope, by process: Int, in list: WritableKeyPath<State, [ModelRemoval]>,
        _ begins: String, _ hasEnded: String, _ body: () -> Void
    ) {
        let index = state.withLock { state in
            state[keyPath: list].append(ModelRemoval(scope: scope, begin: state.tick(), process: process))
            state.note("process \(process) \(begins) \(scope)")
            return state[keyPath: list].count - 1
        }
        body()
        state.withLock { state in
            state[keyPath: list][index].end = state.tick()
            state.note("process \(process) \(hasEnded) \(scope)")
        }
    }

    func flush(_ body: () -> Void) {
        let begin = state.withLock { $0.tick() }
        body()
        state.withLock { state in
            let end = state.tick()
            state.flushes.append(begin..<end)
            state.note("* flushed")
        }
    }

    func kill() {
        state.withLock { state in
            state.kills.append(state.tick())
            state.note("* killed")
        }
    }

    /// The load has ended with this answer.
    func end(_ load: ModelLoad, _ answer: ModelAnswer) {
        state.withLock { state in
            let end = state.tick()
            state.loads[load.number]?.end = end
            state.note("load \(load.number) of \(load.path) ends: \(answer.description)")
            if let (path, time) = state.invalidations[load.number], (200..<300).contains(answer.status) {
                state.removals.append(ModelRemoval(scope: .url(path), begin: time, end: end, process: load.process))
            }
            if let problem = Rules.problem(with: answer, of: load, in: state) {
                let text = "load \(load.number), \(load.description), got \(answer.description): \(problem)"
                state.note("* NOT ALLOWED: \(text)")
                state.violations.append(text)
            }
            // A redirect that the load asked for and followed is stored.
            if answer.path != load.path {
                let asked = state.items.values.filter { $0.asker == load.number && $0.kind == .redirect }
                if let last = asked.max(by: { $0.number < $1.number }), last.target == answer.path {
                    // It may also come for a refresh in the background, while the load followed the stored one: stored
                    // at some later time.
                    let mayBeRefresh = state.items.values.contains {
                        $0.kind == .redirect && $0.number < last.number && $0.request.path == load.path
                            && $0.control.staleWhileRevalidate > 0
                    }
                    if !mayBeRefresh || (answer.check ?? 0) > last.number { state.items[last.number]?.visible = end }
                }
            }
            // Who asked the origin has what it brought stored; and what a lookup finds is stored.
            if let number = answer.token, let item = state.items[number], item.visible == nil,
                load.isLookup || item.asker == load.number, load.process == item.process
            {
                state.items[number]?.visible = end
            }
        }
    }

    func fail(_ load: ModelLoad, _ error: String, isExpected: Bool) {
        state.withLock { state in
            _ = state.tick()
            state.note("load \(load.number) of \(load.path) fails: \(error)")
            if !isExpected, !state.mayFail(load), load.policy != .dontLoad {
                state.violations.append("load \(load.number), \(load.description), failed: \(error)")
            }
        }
    }
}

/// Moves when a script says so, and by a microsecond at each look: no two things happen at the same time.
final class ModelClock: Sendable {
    private let state = Mutex((start: Date(timeIntervalSince1970: 1_790_000_000), looks: 0))

    var wallClock: WallClock { WallClock { self.now } }

    var now: Date {
        state.withLock { state in
            state.looks += 1
            return state.start.addingTimeInterval(Double(state.looks) / 1_000_000)
        }
    }

    var seconds: TimeInterval { now.timeIntervalSince1970 }

    func advance(by seconds: Int) {
        state.withLock { $0.start += TimeInterval(seconds) }
    }
}
