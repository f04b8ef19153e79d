import ExampleSupport
import Foundation

extension Fleet {
    private enum Change: String, CaseIterable {
        case silent = "/price/silent"
        case purged = "/price/purged"
        case untold = "/untold/written"
        case written = "/price/written"

        var words: String {
            switch self {
            case .silent: "nobody tells a cache"
            case .purged: "PURGE at the tier"
            case .untold: "PUT, the tier does not mind it"
            case .written: "PUT, the tier drops the answer"
            }
        }

        var isWritten: Bool { self == .untold || self == .written }
    }

    /// A resource changes, and each process asks for it until it gets the new version.
    ///
    /// Process 0 writes. It and the first half have a copy that was new when they got it. The others got theirs from the tier three
    /// seconds later, and the last has none.
    func showChanges() throws {
        let lifetime = Resource.priceLifetime
        print(
            "\n3. What may be reused for \(lifetime) s changes when it is 3 s old. Who gets the old version, how long?\n"
        )
        // What nginx does with a PUT is what Varnish does without the line for it.
        let changes = Change.allCases.filter { kind.canPurge || $0 == .silent || $0 == .untold }
        let paths = changes.map(\.rawValue)
        try open(.both, for: "changes")
        let last = Self.size - 1
        checkBodies(try load { $0 < Self.size / 2 ? paths : [] }, "before the change")
        Thread.sleep(forTimeInterval: 3)
        checkBodies(try load { $0 >= Self.size / 2 && $0 < last ? paths : [] }, "before the change")

        _ = try origin.ask(OriginOrder.change(changes.filter { !$0.isWritten }.map(\.rawValue)), for: Bool.self)
        for change in changes where change != .silent {
            try workers[0].send(WorkerOrder.send(method: change == .purged ? "PURGE" : "PUT", change.rawValue))
            guard case .status(let status) = try workers[0].receive(WorkerReply.self) else {
                throw Failure("no status")
            }
            check(status.map { 200..<300 ~= $0 } == true, "\(change.words): status \(status ?? 0)")
        }
        let changed = Date()
        for worker in workers { try worker.send(WorkerOrder.watch(paths, since: changed)) }
        let watched = try workers.map { worker in
            guard case .watched(let watched) = try worker.receive(WorkerReply.self) else {
                throw Failure("not watched")
            }
            return watched
        }

        var table = TextTable(
            ("", .left), ("the writer", .left), ("copied at once", .left), ("copied 3 s later", .left),
            ("no copy", .left), ("oldest answer", .right))
        for (index, change) in changes.enumerated() {
            let each = watched.map { $0[index] }
            let age = each.compactMap(\.age).max()
            table.add(
                change.words, words(each[0...0]), words(each[1..<(Self.size / 2)]),
                words(each[(Self.size / 2)..<last]), words(each[last...last]),
                age.map { String(format: "%.1f s", $0) } ?? "-")
            check(
                each.allSatisfy { $0.firstNew != nil }, "\(change.words): the new version did not reach every process")
            // A lifetime counts from the origin's answer, however many caches were on the way: did a process
            // count its copy's from when it got it, there would be answers of nearly nine seconds.
            check(age ?? 0 <= Double(lifetime + 2), "\(change.words): an answer was \(age ?? 0) s old")
            switch change {
            case .purged:
                check(each[last].oldAnswers == 0, "\(change.words): a process without a copy got the old version")
            case .written:
                check(each[0].oldAnswers == 0, "\(change.words): the process that wrote got the old version")
                check(each[last].oldAnswers == 0, "\(change.words): a process without a copy got the old version")
            case .silent, .untold:
                break
            }
        }
        print(table.text)
        if !kind.canPurge { print("\nnginx as it comes drops no entry, for PURGE or for PUT.") }
    }

    /// When the last of some processes got the last old answer.
    private func words(_ watched: ArraySlice<Watched>) -> String {
        guard let last = watched.compactMap(\.lastOld).max() else { return "new at once" }
        return String(format: "old for %.1f s", last)
    }
}
