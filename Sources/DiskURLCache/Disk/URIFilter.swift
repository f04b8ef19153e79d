/// Tells of most URLs that nothing of theirs is stored, without their keys' digests: a SHA-256 costs more than all else in
/// a miss.
///
/// A counter for each place; a URL's place is its hash's low bits. With sixteen places for a row, one miss in sixteen at
/// most takes the long way. A counter that is full stays full: it no longer says no, which is always allowed.
struct URIFilter: Sendable {
    private var counts = [UInt8](repeating: 0, count: 256)
    private var warmth: UInt8 = 0

    /// How many rows it is good for.
    var capacity: Int { counts.count / 16 }

    init(capacity: Int = 16) {
        var size = 256
        while size < capacity * 16 { size *= 2 }
        counts = [UInt8](repeating: 0, count: size)
    }

    func mayContain(_ uriHash: UInt32) -> Bool {
        counts[place(uriHash)] != 0
    }

    mutating func insert(_ uriHash: UInt32) {
        let place = place(uriHash)
        if counts[place] != .max { counts[place] += 1 }
    }

    /// See `DiskIndex.warm`.
    mutating func warm(_ hashes: some Collection<UInt32>) {
        warmth = hashes.reduce(0) { $0 &+ counts[place($1)] }
    }

    mutating func remove(_ uriHash: UInt32) {
        let place = place(uriHash)
        if counts[place] != .max, counts[place] > 0 { counts[place] -= 1 }
    }

    private func place(_ uriHash: UInt32) -> Int {
        Int(uriHash) & (counts.count - 1)
    }
}
