/// What eviction remembers between passes. Confined to `DiskStore.io`.
struct Eviction {
    /// Single records that could not be unlinked. They are not tried again.
    private(set) var stuck: Set<RecordName> = []
    /// Until then eviction rests: hardly anything could be unlinked the last time.
    private var nextTime = 0.0

    var isRested: Bool { MonotonicTime.seconds >= nextTime }

    /// - Parameter passedOver: records that could not be unlinked.
    mutating func ended(passedOver: Set<RecordName>, isHopeless: Bool) {
        if isHopeless {
            nextTime = MonotonicTime.seconds + 1
        } else if passedOver.count < 1024 {
            stuck = passedOver
        }
    }
}
