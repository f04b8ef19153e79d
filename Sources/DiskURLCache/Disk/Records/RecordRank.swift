/// Which of two records of one variant is the newer one.
struct RecordRank: Comparable {
    /// Whether the record's time is in the future, since the clock was set back after it was stored. Such a record
    /// counts as the older one.
    let isFromFuture: Bool
    let storedAt: UInt32
    /// Compared after the time, since a pin gives the record a larger number without making the response newer.
    let sequence: UInt64
    let isWrittenNow: Bool

    static func < (left: RecordRank, right: RecordRank) -> Bool {
        if left.isFromFuture != right.isFromFuture { return left.isFromFuture }
        if left.storedAt != right.storedAt { return left.storedAt < right.storedAt }
        if left.sequence != right.sequence { return left.sequence < right.sequence }
        return !left.isWrittenNow && right.isWrittenNow
    }
}
