/// The stored responses of a key. Those that memory knows are at hand; otherwise they are read from disk when they are
/// needed.
package struct Lookup: Sendable {
    /// All stored variants, the most recent first, if memory knows them all; nil if the disk has to be read.
    let known: [StoredVariant]?
    /// Reads all of them, on the caller's thread.
    private let read: @Sendable () -> [StoredVariant]

    init(known: [StoredVariant]? = nil, read: @escaping @Sendable () -> [StoredVariant] = { [] }) {
        self.known = known
        self.read = read
    }

    /// All stored variants, the most recent first. May read the disk on the caller's thread.
    func variants() -> [StoredVariant] { known ?? read() }
}
