/// The rows of each resource: a table with one row of each, and links between the rows that share a resource. Thousands
/// may: the users of a URL, the bodies of an endpoint. In a table of all rows they would lie side by side, and each
/// search would walk over them.
///
/// The rows are positions in the owner's array. The owner supplies the resource of a row.
struct ResourceRows: Sendable {
    private struct Links {
        var next: Int32
        var previous: Int32
    }

    private static let none: Int32 = -1
    private let seed = TableSeed.ofProcess
    private var firsts = HashTable()
    private var links: [Links] = []

    /// Calls `body` with each row of a resource.
    @inline(__always)
    func forEach(of resource: UInt64, resourceOf: (Int) -> UInt64?, _ body: (Int) -> Void) {
        var row = firsts.position(hash: seed.hash(resource)) { resourceOf($0) == resource }
        while let current = row {
            body(current)
            row = links[current].next == Self.none ? nil : Int(links[current].next)
        }
    }

    /// Adds a row. Rows are numbered densely from 0.
    @inline(__always)
    mutating func insert(_ row: Int, of resource: UInt64, resourceOf: (Int) -> UInt64?) {
        let hash = seed.hash(resource)
        while links.count <= row { links.append(Links(next: Self.none, previous: Self.none)) }
        guard let first = firsts.position(hash: hash, where: { resourceOf($0) == resource }) else {
            links[row] = Links(next: Self.none, previous: Self.none)
            return firsts.insert(row, hash: hash) { [seed] in seed.hash(resourceOf($0) ?? 0) }
        }
        // After the first one, so that the table stays as it is.
        let next = links[first].next
        links[row] = Links(next: next, previous: Int32(first))
        links[first].next = Int32(row)
        if next != Self.none { links[Int(next)].previous = Int32(row) }
    }

    @inline(__always)
    mutating func remove(_ row: Int, of resource: UInt64, resourceOf: (Int) -> UInt64?) {
        let hash = seed.hash(resource)
        let (next, previous) = (links[row].next, links[row].previous)
        if next != Self.none { links[Int(next)].previous = previous }
        if previous != Self.none {
            links[Int(previous)].next = next
        } else if next != Self.none {
            firsts.replace(row, by: Int(next), hash: hash)
        } else {
            firsts.remove(row, hash: hash) { [seed] in seed.hash(resourceOf($0) ?? 0) }
        }
    }

    /// Makes room for `capacity` rows.
    mutating func reserve(_ capacity: Int) { links.reserveCapacity(capacity) }

    /// The same for the table, for rows of as many resources.
    mutating func reserveTable(_ capacity: Int, resourceOf: (Int) -> UInt64?) {
        firsts.reserve(capacity) { [seed] in seed.hash(resourceOf($0) ?? 0) }
    }
}
