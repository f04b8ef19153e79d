/// The keys that may have records, for a cache without an index. With it, an unsafe request, which removes the records
/// of its resource (RFC 9111 §4.4), does not have to list the folder each time.
///
/// It is made by listing the folder once. From then on keys that other caches report are added. Keys whose records were
/// removed stay, which costs a few system calls each.
struct NameTable: Sendable {
    /// Sorted by resource.
    private var listed: [KeyName] = []
    /// By resource.
    private var added: [UInt64: Set<KeyName>] = [:]
    private var addedCount = 0

    private static let addedLimit = 65_536

    mutating func fill(_ keys: [KeyName]) { listed = keys.sorted { $0.resource < $1.resource } }

    /// False if the table is full; then the folder has to be listed again.
    mutating func add(_ key: KeyName) -> Bool {
        if added[key.resource, default: []].insert(key).inserted { addedCount += 1 }
        return addedCount <= Self.addedLimit
    }

    func keys(ofResource resource: UInt64) -> Set<KeyName> {
        var low = 0
        var high = listed.count
        while low < high {
            let middle = (low + high) / 2
            if listed[middle].resource < resource {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return (added[resource] ?? []).union(listed[low...].prefix { $0.resource == resource })
    }
}
