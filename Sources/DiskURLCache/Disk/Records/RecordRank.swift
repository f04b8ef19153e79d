/// Which of two records of one variant is the newer one.
struct RecordRank: Comparable {
    /// The clock was set back since it was stored: it is the older one.
    let isFromFuture: Bool
    let storedAt: UInt32
    /// A pin gives a record a larger number, and makes the response no newer: the time comes first.
    let sequence: UInt64
    let isWrittenNow: Bool

    static func < (left: RecordRank, right: RecordRank) -> Bool {
        if left.isFromFuture != right.isFromFuture { return left.isFromFuture }
        if left.storedAt != right.storedAt { return left.storedAt < right.storedAt }
        if left.sequence != right.sequence { return left.sequence < right.sequence }
        return !left.isWrittenNow && right.isWrittenNow
    }
}
