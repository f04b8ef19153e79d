import Foundation

/// Passes a response that was read from disk through the superclass. Several reports say that Apple's loader ignores
/// responses that a subclass made, and accepts those from the superclass's memory.
///
/// The superclass keeps the response only for that moment, and never answers by its own rules. Since it stores
/// asynchronously, a removal may come before the store; so removals and memory warnings empty the superclass, too.
struct SuperclassCopy {
    var store: (CachedURLResponse) -> Void
    var find: () -> CachedURLResponse?
    var remove: () -> Void
    /// Waits some milliseconds: the superclass stores on a different queue, so that the response is found a little
    /// later.
    var wait: (Int) -> Void = { Thread.sleep(forTimeInterval: Double($0) / 1_000) }

    /// About 50 ms in all.
    private static let pauses = [1, 2, 5, 10, 15, 17]

    /// The superclass's object for a response, or nil if the object is not found. It is identified by
    /// the number of the entry, since several entries of this cache have the same key in the superclass.
    func copy(of response: CachedURLResponse) -> CachedURLResponse? {
        let number = response.entryNumber
        func copy() -> CachedURLResponse? { find().flatMap { $0.entryNumber == number ? $0 : nil } }
        store(response)
        defer { remove() }
        if let copy = copy() { return copy }
        for pause in Self.pauses {
            wait(pause)
            if let copy = copy() { return copy }
        }
        return nil
    }
}
