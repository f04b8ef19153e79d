// What the index alone can say of criteria.

extension EntryCriteria {
    enum Judgement {
        case matches
        /// Only the record itself can tell.
        case mayMatch
        case doesNotMatch
    }

    /// What can be said by the index alone.
    /// - Parameter isCurrent: false where another process may have stored or freshened the record since the row was made: only what
    ///   all records of a key have in common counts then.
    func judge(_ row: IndexRow, isCurrent: Bool = true) -> Judgement {
        if let accessedBefore, row.accessedAt >= accessedBefore.recordSeconds { return .doesNotMatch }
        if row.isPartial { return .mayMatch }
        if let uriHash, row.uriHash != uriHash { return .doesNotMatch }
        if let hostHash, row.hostHash != hostHash { return .doesNotMatch }
        let canChange = tag != nil || storedAfter != nil || storedBefore != nil
        if !isCurrent, canChange { return .mayMatch }
        if let tag, !row.tagFilter.mayContain(tag) { return .doesNotMatch }
        // Rows know whole seconds: within the second of the boundary the record decides.
        if let storedAfter, row.storedAt < storedAfter.recordSeconds { return .doesNotMatch }
        if let storedBefore, row.storedAt > storedBefore.recordSeconds { return .doesNotMatch }
        let isNearBoundary = [storedAfter, storedBefore].contains {
            $0.map { $0.recordSeconds == row.storedAt } ?? false
        }
        return tag != nil || urlPrefix != nil || isNearBoundary ? .mayMatch : .matches
    }
}
