/// The stored responses of one key, as far as they are known without the disk; the others are read when they are asked
/// for.
package struct Lookup: Sendable {
    /// All stored variants, the most recent first, if memory knows them all; nil if the disk has to be asked.
    let known: [StoredVariant]?
    /// Reads all of them, on the caller's thread.
    private let read: @Sendable () -> [StoredVariant]

    init(known: [StoredVariant]? = nil, read: @escaping @Sendable () -> [StoredVariant] = { [] }) {
        (self.known, self.read) = (known, read)
    }

    /// All stored variants, the most recent first. May read the disk on the caller's thread.
    func variants() -> [StoredVariant] { known ?? read() }
}
