import ExampleSupport
import Foundation

extension Fleet {
    private static let known = 20

    /// The tier is killed while all processes load, comes back, and is replaced by a server that sends garbage.
    func showOutage() throws {
        print("\n4. The tier is killed while all processes load. Each load of a process is a request to the tier.\n")
        var table = TextTable(
            ("", .left), ("tier", .right), ("own copy after 304", .right), ("own copy, stale", .right),
            ("origin", .right), ("failed", .right), ("origin requests", .right))
        let knownPaths = (0..<Self.known).map { "/stock/known/\($0)" }
        /// Paths that no process has loaded.
        func newPaths(_ process: Int, _ phase: String, _ count: Int) -> [String] {
            (0..<count).map { "/stock/\(phase)-\(process)/\($0)" }
        }
        func add(_ title: String, _ answers: [[Answer]]) throws {
            checkBodies(answers, title)
            let sources: [Answer.Source] = [.tier, .checked, .stale, .origin, .failed]
            let counts = sources.map { source in answers.joined().filter { $0.source == source }.count }
            table.add([title] + counts.map { "\($0)" } + ["\(try tally("/stock/").requests)"])
        }
        /// Checks the sources of the responses for new and known paths.
        func check(_ answers: [[Answer]], known: Set<Answer.Source>, new: Set<Answer.Source>, _ title: String) {
            let wrong = answers.joined().filter {
                !($0.path.hasPrefix("/stock/known/") ? known : new).contains($0.source)
            }
            let first = wrong.first.map { "\($0.path) from \($0.source)" } ?? ""
            self.check(wrong.isEmpty, "\(title): \(wrong.count) responses from elsewhere, \(first) first")
        }

        try open(.both, for: "outage")
        try add("each loads \(Self.known)", try load { _ in knownPaths })

        let killed = try load(pause: 0.005, whenOneHasDoneHalf: killTier) { process in
            var generator = SeededGenerator(seed: UInt64(process) + 100)
            return (knownPaths + knownPaths + newPaths(process, "middle", Self.known)).shuffled(using: &generator)
        }
        try add("killed in the middle", killed)
        check(killed, known: [.tier, .checked, .stale], new: [.tier, .origin], "killed in the middle")

        let down = try load { knownPaths + newPaths($0, "down", Self.known) }
        try add("still down", down)
        check(down, known: [.stale], new: [.origin], "still down")

        try startTier()
        let back = try load { knownPaths + newPaths($0, "back", Self.known) }
        try add("back again", back)
        check(back, known: [.checked], new: [.tier], "back again")

        try killTier()
        let garbage = try Helper(.garbage, "\(tierPort)")
        _ = try garbage.receive(Bool.self)
        let answers = try load(timeout: 1) {
            Array(knownPaths.prefix(Garbage.allCases.count)) + newPaths($0, "garbage", Garbage.allCases.count)
        }
        try add("sends garbage", answers)
        check(answers, known: [.stale, .origin], new: [.origin], "garbage")
        garbage.end()

        try startTier()
        let after = try load { knownPaths + newPaths($0, "garbage", Garbage.allCases.count) }
        try add("and back again", after)
        check(after, known: [.checked, .tier], new: [.tier], "after the garbage")
        // A server whose 304 was for another version is not asked by its tag again for an hour: it sends the whole.
        let distrusted = Garbage.allCases.firstIndex(of: .unaskedNotModified).map { "/stock/known/\($0)" }
        let whole = after.joined().filter { $0.source == .tier && $0.path.hasPrefix("/stock/known/") }
        self.check(whole.allSatisfy { $0.path == distrusted }, "after the garbage: a page was sent again")
        print(table.text)
        showGarbage(answers)
    }

    private func showGarbage(_ answers: [[Answer]]) {
        print("\n5. The response used instead of the garbage, and the time until then (median; at most 1 s).\n")
        var table = TextTable(("the tier answered", .left), ("with a copy", .left), ("without a copy", .left))
        for garbage in Garbage.allCases {
            func words(_ isKnown: Bool) -> String {
                let these = answers.joined().filter {
                    Garbage.of($0.path) == garbage && $0.path.hasPrefix("/stock/known/") == isKnown
                }
                let sources = Set(these.map(\.source.rawValue)).sorted().joined(separator: ", ")
                let seconds = these.map(\.seconds).sorted()
                return "\(sources), \(milliseconds(seconds[seconds.count / 2]))"
            }
            table.add(garbage.words, words(true), words(false))
        }
        print(table.text)
        let count = answers.joined().count
        let right = answers.joined().filter { $0.version != nil }.count
        print(
            "\n\(right) of \(count) responses have the origin's bytes. No garbage was stored.")
    }
}
