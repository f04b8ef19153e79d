/// The keys that may have records, for a cache without an index: an unsafe request removes the records of its resource
/// (RFC 9111 §4.4), and does not list the folder each time.
///
/// It is made by one listing. From then on each cache tells the keys that it stores, and they are added. A key whose
/// records were removed stays in it, which costs a few system calls.
struct NameTable: Sendable {
    /// By resource.
    private var listed: [KeyName] = []
    private var added: Set<KeyName> = []

    private static let addedLimit = 65_536

    mutating func fill(_ keys: [KeyName]) { listed = keys.sorted { $0.resource < $1.resource } }

    /// False if there is no room: then the folder is to be listed again.
    mutating func add(_ key: KeyName) -> Bool {
        added.insert(key)
        return added.count <= Self.addedLimit
    }

    func keys(ofResource resource: UInt64) -> Set<KeyName> {
        var (low, high) = (0, listed.count)
        while low < high {
            let middle = (low + high) / 2
            if listed[middle].resource < resource { low = middle + 1 } else { high = middle }
        }
        return added.filter { $0.resource == resource }.union(listed[low...].prefix { $0.resource == resource })
    }
}
