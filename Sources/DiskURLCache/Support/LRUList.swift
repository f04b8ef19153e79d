/// The order in which slots were last used, as a linked list: adding, touching and removing take constant time. The
/// owner numbers the slots, knows what is in them, and locks.
///
/// Invariant: every linked slot is reachable from `mostRecent` by `older` and from `leastRecent` by `newer`.
struct LRUList: Sendable {
    private struct Links {
        var newer: Int32
        var older: Int32
    }

    private static let none: Int32 = -1
    private var links: [Links] = []
    private var head = none
    private var tail = none

    var leastRecent: Int? { tail == Self.none ? nil : Int(tail) }

    var mostRecent: Int? { head == Self.none ? nil : Int(head) }

    /// The slot used just before `slot`; nil for the least recently used one.
    func older(than slot: Int) -> Int? {
        let older = links[slot].older
        return older == Self.none ? nil : Int(older)
    }

    /// The slot used just after `slot`; nil for the most recently used one.
    func newer(than slot: Int) -> Int? {
        let newer = links[slot].newer
        return newer == Self.none ? nil : Int(newer)
    }

    /// Links a slot as the most recently used one. Slots are used densely from 0.
    mutating func insert(_ slot: Int) {
        insert(slot, newerThan: mostRecent)
    }

    /// Links a slot as used just after `other`; if that is nil, as the least recently used one.
    mutating func insert(_ slot: Int, newerThan other: Int?) {
        while links.count <= slot {
            links.append(Links(newer: Self.none, older: Self.none))
        }
        let older = other.map { Int32($0) } ?? Self.none
        let newer = older == Self.none ? tail : links[Int(older)].newer
        links[slot] = Links(newer: newer, older: older)
        setOlder(of: newer, Int32(slot))
        setNewer(of: older, Int32(slot))
    }

    mutating func touch(_ slot: Int) {
        guard head != Int32(slot) else { return }
        remove(slot)
        insert(slot)
    }

    mutating func remove(_ slot: Int) {
        let newer = links[slot].newer
        let older = links[slot].older
        setOlder(of: newer, older)
        setNewer(of: older, newer)
    }

    /// What comes after a slot; after none comes the most recently used one.
    private mutating func setOlder(of slot: Int32, _ older: Int32) {
        if slot == Self.none {
            head = older
        } else {
            links[Int(slot)].older = older
        }
    }

    /// What comes before a slot; before none comes the least recently used one.
    private mutating func setNewer(of slot: Int32, _ newer: Int32) {
        if slot == Self.none {
            tail = newer
        } else {
            links[Int(slot)].newer = newer
        }
    }

    mutating func reserve(_ capacity: Int) {
        links.reserveCapacity(capacity)
    }
}
