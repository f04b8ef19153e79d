/// The rows of each resource: a table with one row of each, and links between the rows that share a resource. Thousands
/// may: the users of a URL, the queries of an endpoint, all spellings of a path with `No-Vary-Search`. In a table of
/// all rows they would lie side by side, and each search would walk over them.
///
/// The rows are positions in the owner's array. The owner supplies the hash of a resource, and compares resources.
struct ResourceRows: Sendable {
    private struct Links {
        var next: Int32
        var previous: Int32
    }

    private static let none: Int32 = -1
    private var firsts = HashTable()
    private var links: [Links] = []

    /// Calls `body` with each row of a resource.
    @inline(__always)
    func forEach(hash: Int, where isMatch: (Int) -> Bool, _ body: (Int) -> Void) {
        var row = firsts.position(hash: hash, where: isMatch)
        while let current = row {
            body(current)
            row = links[current].next == Self.none ? nil : Int(links[current].next)
        }
    }

    /// Adds a row. Rows are numbered densely from 0.
    /// - Parameter isMatch: whether a row has the same resource.
    @inline(__always)
    mutating func insert(_ row: Int, hash: Int, where isMatch: (Int) -> Bool, hashOf: (Int) -> Int) {
        while links.count <= row { links.append(Links(next: Self.none, previous: Self.none)) }
        guard let first = firsts.position(hash: hash, where: isMatch) else {
            links[row] = Links(next: Self.none, previous: Self.none)
            return firsts.insert(row, hash: hash, hashOf: hashOf)
        }
        // After the first one, so that the table stays as it is.
        let next = links[first].next
        links[row] = Links(next: next, previous: Int32(first))
        links[first].next = Int32(row)
        if next != Self.none { links[Int(next)].previous = Int32(row) }
    }

    @inline(__always)
    mutating func remove(_ row: Int, hash: Int, hashOf: (Int) -> Int) {
        let (next, previous) = (links[row].next, links[row].previous)
        if next != Self.none { links[Int(next)].previous = previous }
        if previous != Self.none {
            links[Int(previous)].next = next
        } else if next != Self.none {
            firsts.replace(row, by: Int(next), hash: hash)
        } else {
            firsts.remove(row, hash: hash, hashOf: hashOf)
        }
    }

    /// Makes room for `capacity` rows.
    mutating func reserve(_ capacity: Int) { links.reserveCapacity(capacity) }

    /// The same for the table, for rows of as many resources.
    mutating func reserveTable(_ capacity: Int, hashOf: (Int) -> Int) { firsts.reserve(capacity, hashOf: hashOf) }
}
