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
            case .silent: "no purge"
            case .purged: "PURGE at the tier"
            case .untold: "PUT, the tier ignores it"
            case .written: "PUT, the tier removes the response"
            }
        }

        var isWritten: Bool { self == .untold || self == .written }
    }

    /// A resource changes, and each process loads it until it gets the new version.
    ///
    /// Process 0 writes. It and the first half of the processes have a copy that was new when they got it. The other
    /// processes got their copies from the tier three seconds later, and the last process has none.
    func showChanges() throws {
        let lifetime = Resource.priceLifetime
        print(
            "\n3. A resource with a lifetime of \(lifetime) s changes after 3 s. Which process gets the old version, and how long?\n"
        )
        // nginx treats a PUT as Varnish does without the line of VCL for it.
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
            ("no copy", .left), ("oldest response", .right))
        for (index, change) in changes.enumerated() {
            let each = watched.map { $0[index] }
            let age = each.compactMap(\.age).max()
            table.add(
                change.words, words(each[0...0]), words(each[1..<(Self.size / 2)]),
                words(each[(Self.size / 2)..<last]), words(each[last...last]),
                age.map { String(format: "%.1f s", $0) } ?? "-")
            check(
                each.allSatisfy { $0.firstNew != nil }, "\(change.words): the new version did not reach every process")
            // A lifetime counts from the origin's response, however many caches were on the way. If a process counted
            // it from the arrival of its copy, responses would be nearly nine seconds old.
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
        if !kind.canPurge { print("\nnginx without modules removes no response, for PURGE or for PUT.") }
    }

    /// The time until the last of these processes got its last old response.
    private func words(_ watched: ArraySlice<Watched>) -> String {
        guard let last = watched.compactMap(\.lastOld).max() else { return "new at once" }
        return String(format: "old for %.1f s", last)
    }
}
