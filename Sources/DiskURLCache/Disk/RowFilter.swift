/// What a row must show so that its record may meet some conditions: which records have to be read. Made once for all
/// rows.
struct RowFilter {
    private let resource: UInt64?
    private let hostHash: UInt32?
    private let levels: PathLevels?
    /// Of each tag.
    private let tags: [TagFilter]
    private let storedAfter: UInt32
    private let storedBefore: UInt32

    init(_ criteria: EntryCriteria) {
        resource = criteria.resource
        hostHash = criteria.host?.hash
        levels = criteria.urlPrefix.map(PathLevels.init(ofNormal:))
        tags = criteria.tags.map { TagFilter([$0]) }
        storedAfter = criteria.storedAfter?.recordSeconds ?? 0
        storedBefore = criteria.storedBefore?.recordSeconds ?? .max
    }

    func mayMatch(_ row: IndexRow) -> Bool {
        if let resource, row.key.resource != resource { return false }
        if row.isPartial { return true }
        if let hostHash, row.hostHash != hostHash { return false }
        if let levels, !row.pathLevels.mayBegin(with: levels) { return false }
        if !tags.isEmpty, !tags.contains(where: row.tagFilter.mayContain) { return false }
        // Rows know whole seconds: within the second of the limit, the record has to be read.
        return row.storedAt >= storedAfter && row.storedAt <= storedBefore
    }
}
