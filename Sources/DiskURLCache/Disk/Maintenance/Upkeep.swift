/// What passes still have to do about records of which they know: read heads, and look at ages.
struct Upkeep {
    /// Keys with records that are known by name alone.
    private var unread: [KeyName] = []
    /// Those that could not be read when that was tried, and when it is tried again, in seconds of the monotonic clock.
    private var unreadable: Set<KeyName> = []
    private var nextTry = 0.0
    /// When ages are looked at next, in seconds of the monotonic clock.
    private(set) var nextAgeCheck = 0.0

    init(unread: [KeyName] = []) { self.unread = unread }

    /// The next keys whose heads are to be read: so few that a pass is short.
    /// - Returns: also whether these are the last ones.
    mutating func nextUnread(in index: DiskIndex) -> (keys: [KeyName], isLast: Bool) {
        var keys: [KeyName] = []
        if nextTry <= MonotonicTime.seconds {
            unread += unreadable
            unreadable = []
        }
        if unread.isEmpty { return (keys, true) }
        // Many may be known or gone by now.
        for _ in 0..<4_096 {
            guard keys.count < 64, let key = unread.popLast() else { break }
            if index.rows(of: key).contains(where: \.isPartial) { keys.append(key) }
        }
        // Then the ages of all are known.
        if unread.isEmpty { nextAgeCheck = 0 }
        return (keys, unread.isEmpty)
    }

    /// A head could not be read at this moment.
    /// - Parameter wait: the seconds until it is tried again.
    mutating func readLater(_ key: KeyName, after wait: Double) {
        if unreadable.isEmpty { nextTry = MonotonicTime.seconds + wait }
        unreadable.insert(key)
    }

    /// Ages are looked at again when the next record exceeds one.
    /// - Parameters:
    ///   - wait: the seconds until then.
    ///   - least: each look visits all rows, so so many seconds are in between.
    mutating func planAgeCheck(after wait: Double, atLeast least: Double) {
        // The clock by which records age may be set meanwhile, so a day is the longest time.
        nextAgeCheck = MonotonicTime.seconds + min(max(wait, least), 86_400)
    }

    /// The same, unless ages are looked at earlier anyway.
    mutating func bringAgeCheckForward(to wait: Double, atLeast least: Double) {
        let planned = nextAgeCheck
        planAgeCheck(after: wait, atLeast: least)
        nextAgeCheck = min(nextAgeCheck, planned)
    }
}
