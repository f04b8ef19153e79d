extension Catalog {
    /// Where to look for the records of a key. It is decided under the lock; the records are then read without it.
    struct LookupPlan {
        let name: KeyName
        /// The slots to read.
        var slots: Slots = []
        /// The slots whose records have not been used for too long: they are not read.
        var expired: Slots = []
        /// The slots that have intact records according to the index.
        var known: Slots = []
        /// Whether the slots are known from rows, not probed.
        var isExact = false
        /// The size of the largest record that is read.
        var limit = 0
        /// Whether this lookup is the first change since the index was saved.
        var isFirstChange = false
    }
}
