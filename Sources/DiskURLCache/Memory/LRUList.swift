/// Order of use over slots numbered by the owner: O(1) to touch, add and remove. Knows no keys and no locks.
///
/// Invariant: every linked slot is reachable from `mostRecent` by `older` and from `leastRecent` by `newer`.
struct LRUList {
    private struct Links {
        var newer: Int32
        var older: Int32
    }

    private static let none: Int32 = -1
    private var links: [Links] = []
    private var head = none
    private var tail = none

    var leastRecent: Int? { tail == Self.none ? nil : Int(tail) }

    /// The slot used just after `slot`; nil for the most recently used one.
    func newer(than slot: Int) -> Int? {
        let newer = links[slot].newer
        return newer == Self.none ? nil : Int(newer)
    }

    /// Links a slot as the most recently used one. Slots are used densely from 0.
    mutating func insert(_ slot: Int) {
        while links.count <= slot {
            links.append(Links(newer: Self.none, older: Self.none))
        }
        linkAtHead(Int32(slot))
    }

    mutating func touch(_ slot: Int) {
        guard head != Int32(slot) else { return }
        unlink(Int32(slot))
        linkAtHead(Int32(slot))
    }

    mutating func remove(_ slot: Int) {
        unlink(Int32(slot))
    }

    mutating func removeAll() {
        links.removeAll()
        head = Self.none
        tail = Self.none
    }

    private mutating func linkAtHead(_ slot: Int32) {
        links[Int(slot)] = Links(newer: Self.none, older: head)
        if head == Self.none {
            tail = slot
        } else {
            links[Int(head)].newer = slot
        }
        head = slot
    }

    private mutating func unlink(_ slot: Int32) {
        let (newer, older) = (links[Int(slot)].newer, links[Int(slot)].older)
        if newer == Self.none { head = older } else { links[Int(newer)].older = older }
        if older == Self.none { tail = newer } else { links[Int(older)].newer = newer }
    }
}
