// What the index alone can say of criteria.

extension EntryCriteria {
    enum Judgement {
        case matches
        /// Only the record itself can tell.
        case mayMatch
        case doesNotMatch
    }

    /// What can be said by the index alone.
    func judge(_ row: IndexRow) -> Judgement {
        if row.isPartial { return .mayMatch }
        if let resource, row.key.resource != resource { return .doesNotMatch }
        if let hostHash, row.hostHash != hostHash { return .doesNotMatch }
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
