import Foundation

// Changes of records that meet conditions.

extension RecordFiles {
    /// The metadata in a record, and the length of its body; nil if it is gone, or cannot be read.
    func head(of name: RecordName) -> (EntryMetadata, Int)? {
        tail(of: name).map { ($0.metadata, $0.footer.bodyLength) }
    }

    /// The last footer of a record; nil if it is gone, or cannot be read.
    func footer(of name: RecordName) -> RecordFooter? { tail(of: name)?.footer }

    func tail(of name: RecordName) -> LoadedRecord? {
        guard case .record(let record) = reader.read(name, .tail, limit: .max) else { return nil }
        return record
    }

    /// Whether a record meets a condition. A record that cannot be read is taken to meet it, since it might.
    func mayMatch(_ name: RecordName, _ isMatch: (LoadedRecord) -> Bool) -> Bool {
        switch reader.read(name, .tail, limit: .max) {
        case .record(let record): isMatch(record)
        case .unreadable, .damaged: true
        case .missing, .foreign: false
        }
    }

    /// A record that cannot be read is removed as well, since it might match.
    func matches(_ criteria: EntryCriteria, _ row: IndexRow) -> Bool {
        mayMatch(row.name) { matches(criteria, $0) }
    }

    private func matches(_ criteria: EntryCriteria, _ record: LoadedRecord) -> Bool {
        criteria.matches(DiskKey(record.footer), record.metadata)
    }

    /// Marks a record as stale, by a new tail. A record that gets none, for example on a full disk, is removed.
    func markStale(
        _ row: IndexRow, matching criteria: EntryCriteria, at time: Date, _ events: inout [DiskEvent]
    ) {
        switch reader.read(row.name, .tail, limit: .max) {
        case .record(let record):
            // It may be another record by now.
            guard matches(criteria, record) else { return }
            var metadata = record.metadata
            guard metadata.markStale(at: time) else { return }
            let update = update(
                metadata, of: DiskKey(record.footer), replacing: record.metadata,
                usedAt: MonotonicTime.nanoseconds, &events)
            switch update {
            case .appended: break
            // It is not written anew: another cache that is just removing it would not find the new record.
            case .mustRewrite, .notFound: removeForGood(row.name, &events)
            }
        case .unreadable, .damaged: removeForGood(row.name, &events)
        case .missing, .foreign: break
        }
    }
}
