import Foundation

@testable import DiskURLCache

/// Says whether a trace is one of the protocol: `Concurrency.md`, "The protocol among others", and `protocol.pml`,
/// whose names the rules have here. It judges each operation when it ends.
struct ProtocolChecker {
    private typealias Step = ProtocolTrace.Step

    private struct Row {
        var change: DirectoryChange
        var cache: Int
    }

    /// An operation that has not ended.
    private struct Running {
        var operation: ProtocolTrace.Operation
        var key: KeyName?
        var steps: [(time: Int, step: Step)] = []
        /// Whether the cache was alone when it last wrote a record.
        var wroteAlone = false
    }

    /// The file of a record.
    private struct Record {
        var maker: Int
        /// Whether its maker has locked it.
        var isLocked = false
        /// Since when it is whole; nil while it is not.
        var whole: Int?
    }

    private var rows: [ProtocolTrace.RowPlace: Row] = [:]
    private var records: [RecordName: Record] = [:]
    /// The removals that a pass of a cache has told, since the operation could not.
    private var toldLater: [Int: [(time: Int, change: DirectoryChange)]] = [:]
    /// Since when a cache owns the directory.
    private var owners: [Int: Int] = [:]
    /// The owners whose last look, also that of a pass, found nobody else.
    private var alone: Set<Int> = []
    /// When a cache, in an operation or a pass, last looked and found nobody else.
    private var foundNobody: [Int: Int] = [:]
    private var running: [Int: Running] = [:]
    private var time = 0

    /// What a trace does that the protocol does not allow; nil if it is one of the protocol.
    /// - Parameter left: the records in the folder after it.
    static func fault(in events: [ProtocolTrace.Event], left: Set<RecordName>) -> String? {
        var checker = ProtocolChecker()
        for event in events {
            guard let fault = checker.apply(event) else { continue }
            let last = events.prefix(checker.time).suffix(40).map { "\($0.cache) \($0.isOfOperation) \($0.step)" }
            return fault + "\n" + last.joined(separator: "\n")
        }
        return Set(checker.records.keys) == left ? nil : "other records are left than were written"
    }

    private mutating func apply(_ event: ProtocolTrace.Event) -> String? {
        time += 1
        if event.isOfOperation { running[event.cache]?.steps.append((time, event.step)) }
        switch event.step {
        case .begin(let operation, let key):
            running[event.cache] = Running(operation: operation, key: key)
        case .end: return running.removeValue(forKey: event.cache).flatMap { judge($0, of: event.cache) }
        case .own: owners[event.cache] = time
        case .row(let change, let place):
            rows[place] = Row(change: change, cache: event.cache)
            if change.isRemoval, !event.isOfOperation { toldLater[event.cache, default: []].append((time, change)) }
            if case .stored = change, event.isOfOperation, leavesHalf(event.cache) {
                return "STORED_ROW: tells of a record, and has not written it"
            }
        case .make(let name):
            if records.updateValue(Record(maker: event.cache), forKey: name) != nil {
                return "makes a file that is there"
            }
        case .lock(let name): if records[name]?.maker == event.cache { records[name]?.isLocked = true }
        case .publish(let name):
            if records[name] == nil { return "completes a file that is not there" }
            records[name]?.whole = time
            running[event.cache]?.wroteAlone = alone.contains(event.cache)
        case .update(let name):
            if records[name] == nil { return "changes a record that is not there" }
            running[event.cache]?.wroteAlone = alone.contains(event.cache)
        case .unlink(let name):
            guard let record = records[name] else { return "removes what is not there" }
            if record.whole == nil, record.maker != event.cache, record.isLocked, !event.isOfOperation,
                !mayTakeWhatIsWritten(name, by: event.cache)
            {
                return "RECORD_LOCK: a pass removes a record that is being written"
            }
            records[name] = nil
        case .clear: records = [:]
        case .die:
            for (name, record) in records where record.maker == event.cache { records[name]?.isLocked = false }
        case .look(let isThere):
            if !isThere { foundNobody[event.cache] = time }
            if isThere { alone.remove(event.cache) } else if owners[event.cache] != nil { alone.insert(event.cache) }
        case .read: break
        }
        return nil
    }

    /// Whether a pass may remove a record that another cache is writing, as a removal may, which takes along what it
    /// cannot read. Its writer sees that, and takes another slot or withdraws.
    private func mayTakeWhatIsWritten(_ name: RecordName, by cache: Int) -> Bool {
        // It does what a removal could not: it removes what others have announced.
        let begin = records[name].flatMap { running[$0.maker]?.steps.first?.time } ?? time
        return toldLater[cache]?.contains { $0.time > begin && $0.change.concerns(name.key) } == true
    }

    private func judge(_ running: Running, of cache: Int) -> String? {
        switch running.operation {
        case .store, .pin: judgeWriting(running, of: cache)
        case .remove: judgeRemoval(running, of: cache)
        case .lookup: nil
        }
    }

    /// Whether a file that the cache has made and locked in its operation is not whole. One that it could not lock is
    /// left to whoever has taken it for torn.
    private func leavesHalf(_ cache: Int) -> Bool {
        running[cache]?.steps.contains { _, step in
            guard case .make(let name) = step, let record = records[name] else { return false }
            return record.maker == cache && record.isLocked && record.whole == nil
        } == true
    }

    private func judgeWriting(_ running: Running, of cache: Int) -> String? {
        guard let key = running.key else { return nil }
        var madeAt: Int?
        var written: (time: Int, name: RecordName)?
        var lastStored: Int?
        for (time, step) in running.steps {
            switch step {
            case .make: madeAt = time
            case .publish(let name), .update(let name):
                if name.key == key { written = (time, name) }
            case .row(.stored(key), _): lastStored = time
            default: break
            }
        }
        // Refused.
        guard let (writtenAt, name) = written else { return nil }
        let isOwner = owners[cache].map { $0 < writtenAt } == true
        let isAmongOthers = running.steps.contains { if case .row = $0.step { true } else { false } }
        let isAnnounced = running.steps.contains { time, step in
            if case .row(.storing(key), _) = step { time < writtenAt } else { false }
        }
        if !isOwner, !isAnnounced { return "STORING_ROW: a guest writes a record" }
        if lastStored.map({ $0 > writtenAt }) != true {
            // A tail brings nothing back.
            if running.operation == .pin, isOwner, !isAmongOthers || running.wroteAlone { return nil }
            // Instead of telling, whoever is the owner by now may look again and find nobody, or a pass of it: it may
            // have become the owner meanwhile, or the others may have left.
            if owners[cache] != nil, foundNobody[cache].map({ $0 > writtenAt }) == true { return nil }
            return isAmongOthers
                ? "STORED_ROW: a record is written" : "LOOK_AFTER_A_WRITE: writes, and looks for nobody"
        }
        // What it reads from now on was removed after its response was there to be stored.
        guard running.operation == .store, let madeAt else { return nil }
        for case (let time, .read(let places)) in running.steps where time > madeAt {
            for row in places.compactMap({ rows[$0] })
            where row.cache != cache && row.change.isRemoval && row.change.concerns(key) {
                if records[name]?.whole == writtenAt { return "WITHDRAWAL: a record stays of which a removal was read" }
            }
        }
        return nil
    }

    private func judgeRemoval(_ running: Running, of cache: Int) -> String? {
        func isConcerned(_ name: RecordName) -> Bool { running.key == nil || name.key == running.key }
        var told: [Int] = []
        var unlinks: [Int] = []
        var foundNobody: Int?
        for (time, step) in running.steps {
            switch step {
            case .row(let change, _) where change.isRemoval && running.key.map(change.concerns) != false:
                told.append(time)
            case .unlink(let name) where isConcerned(name): unlinks.append(time)
            case .clear: unlinks.append(time)
            case .look(isThere: false): foundNobody = foundNobody ?? time
            default: break
            }
        }
        let removed = unlinks.first ?? .max
        let begun = [told.first, foundNobody].compactMap(\.self).filter { $0 < removed }.min()
        guard let begun else { return "FIRST_ROW: removes, and tells nobody before" }
        // Alone it tells nobody. A cache that comes meanwhile is told when the removal ends, or at the next look. Those
        // of before may have left while it removed.
        let isAlone = foundNobody.map { $0 < removed } == true || alone.contains(cache)
        if !isAlone, told.count < 2 || told[told.count - 1] < unlinks.last ?? 0 {
            return "SECOND_ROW: removes, and tells nobody after"
        }
        let left = records.contains { name, record in isConcerned(name) && record.whole.map { $0 < begun } == true }
        return left ? "a removal leaves a record" : nil
    }
}
