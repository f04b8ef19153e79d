extension EntryCriteria {
    /// Whether the record of a row may match, as far as the row shows.
    func mayMatch(_ row: IndexRow) -> Bool {
        if let resource, row.key.resource != resource { return false }
        if row.isPartial { return true }
        if let host, row.hostHash != host.hash { return false }
        if !tags.isEmpty, !tags.contains(where: row.tagFilter.mayContain) { return false }
        // Rows know whole seconds: within the second of the limit, the record has to be read.
        if let storedAfter, row.storedAt < storedAfter.recordSeconds { return false }
        if let storedBefore, row.storedAt > storedBefore.recordSeconds { return false }
        return true
    }
}
