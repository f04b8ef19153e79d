import Foundation

/// Which records are an answer to a key? Reads what the plan of the catalog says, without a lock as long as the plan holds.
struct RecordLookup: Sendable {
    let catalog: Catalog
    let reader: RecordReader
    let configuration: DiskConfiguration
    let clock: WallClock
    let maintenance: MaintenanceQueue

    /// Runs a look at all slots while no file of this process changes: under `DiskStore.io`.
    typealias Exclusively = (_ read: () -> [LoadedRecord]?) -> [LoadedRecord]?

    /// All live variants of a key, the most recent first. A single small record is read whole at once, its body verified.
    /// Counts as a use of the key.
    ///
    /// - Parameter digest: the key's, the proof that a record of this name is the key's; asked for only when there is
    ///   one.
    func variants(
        named name: KeyName, provedBy digest: () -> KeyDigest, exclusively: Exclusively
    ) -> [StoredVariant] {
        let now = clock.now()
        let plan = catalog.plan(name, now: now, isUse: true)
        if plan.isFirstChange, !configuration.isReadOnly { maintenance.schedule(after: configuration.savingInterval) }
        if plan.slots == 0 { return [] }
        let records = read(plan, name, digest, exclusively)
        if records.isEmpty { return [] }
        return records.compactMap { isTooOld($0.metadata.storedAt, now) ? nil : variant($0) }
    }

    /// Whether a lookup would find something. Not a use.
    func contains(named name: KeyName, provedBy digest: () -> KeyDigest, exclusively: Exclusively) -> Bool {
        let plan = catalog.plan(name, now: clock.now(), isUse: false)
        return plan.slots != 0 && !read(plan, name, digest, exclusively).isEmpty
    }

    private func variant(_ record: LoadedRecord) -> StoredVariant {
        if let body = record.body {
            return StoredVariant(StoredEntry(metadata: record.metadata, body: body), from: .disk)
        }
        let footer = record.footer
        return StoredVariant(
            record.metadata, bodyLength: footer.bodyLength, from: .disk, open: { open(footer) },
            load: { load(footer) })
    }

    private func isTooOld(_ storedAt: Date, _ now: Date) -> Bool {
        guard let age = configuration.maximumStorageAge else { return false }
        return now.timeIntervalSince(storedAt) > age
    }

    // MARK: Reading

    /// The records of the key that the plan finds, one for each variant, the most recent first.
    private func read(
        _ plan: Catalog.LookupPlan, _ key: KeyName, _ digest: () -> KeyDigest, _ exclusively: Exclusively
    ) -> [LoadedRecord] {
        var records = plan.isExact ? read(plan.slots, areAll: true, of: key, plan, digest) : nil
        if records == nil {
            if plan.isExact { requestExamination(of: key) }
            // A record that replaces another one takes another slot: under the lock, none of this process moves past the reader.
            let proof = digest()
            records = exclusively { read(plan.isExact ? .max : plan.slots, areAll: false, of: key, plan) { proof } }
        }
        guard let records, records.count > 1 else { return records ?? [] }
        return oneForEachVariant(records, key)
    }

    /// - Parameter areAll: each of the slots has a record. Nil if one has none: its record was replaced meanwhile, is in another slot, and a
    ///   record that is still being written may have the slot.
    private func read(
        _ slots: UInt8, areAll: Bool, of key: KeyName, _ plan: Catalog.LookupPlan, _ digest: () -> KeyDigest
    ) -> [LoadedRecord]? {
        var records: [LoadedRecord] = []
        var proof: KeyDigest?
        // Small bodies are read with their metadata, also of several variants: a body that is read later may have been replaced by then.
        for slot in 0..<RecordName.slots where slots & 1 << slot != 0 {
            switch reader.read(RecordName(key: key, slot: slot), .lookup, limit: plan.limit) {
            case .record(let record):
                let expected = proof ?? digest()
                proof = expected
                // A different key may have this name.
                if record.footer.digest == expected { records.append(record) }
            case .unreadable: break
            case .missing where areAll, .foreign where areAll, .damaged where areAll: return nil
            case .damaged: requestExamination(of: key, verifyingBodies: true)
            case .missing, .foreign: if plan.known & 1 << slot != 0 { requestExamination(of: key) }
            }
        }
        return records
    }

    /// Of two records of one variant, which a crash may leave, the more recent counts.
    private func oneForEachVariant(_ records: [LoadedRecord], _ key: KeyName) -> [LoadedRecord] {
        var best: [LoadedRecord] = []
        for record in records.sorted(by: { $0.footer.sequence > $1.footer.sequence }) {
            if best.contains(where: { $0.footer.varyHash == record.footer.varyHash }) {
                requestExamination(of: key)
            } else {
                best.append(record)
            }
        }
        return best
    }

    /// Reads a variant's record whole; nil where another one has its place by now.
    private func load(_ footer: RecordFooter) -> StoredEntry? {
        switch reader.read(footer.name, .whole, limit: catalog.readLimit) {
        case .record(let record):
            guard record.footer.digest == footer.digest, record.footer.sequence == footer.sequence,
                let body = record.body
            else { return nil }
            return StoredEntry(metadata: record.metadata, body: body)
        case .damaged:
            requestExamination(of: footer.name.key, verifyingBodies: true)
            return nil
        case .missing, .unreadable, .foreign: return nil
        }
    }

    /// The same, with the body left in the file, which stays open.
    private func open(_ footer: RecordFooter) -> OpenBody? {
        switch reader.open(footer.name, limit: catalog.readLimit) {
        case .record(let record, let body):
            let isSame = record.footer.digest == footer.digest && record.footer.sequence == footer.sequence
            return isSame ? body : nil
        case .damaged:
            requestExamination(of: footer.name.key, verifyingBodies: true)
            return nil
        case .notFound: return nil
        }
    }

    // MARK: Repair

    /// Notes that a key's files and rows do not agree; the maintenance queue looks into it.
    private func requestExamination(of key: KeyName, verifyingBodies: Bool = false) {
        if configuration.isReadOnly { return }
        catalog.requestExamination(of: key, verifyingBodies: verifyingBodies)
        maintenance.schedule(after: configuration.maintenanceDelay)
    }
}
