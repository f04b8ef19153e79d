import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Puts a response that was read from disk into the superclass: several reports say that Apple's loader ignores
/// responses that a subclass made, and accepts those that came from the superclass's memory.
///
/// The superclass holds the response for that moment only, and never answers by its own rules. A removal may overtake
/// the store, which is not at once: so removals and memory warnings empty the superclass too.
struct SuperclassCopy {
    var store: (CachedURLResponse) -> Void
    var find: () -> CachedURLResponse?
    var remove: () -> Void
    /// Waits for some milliseconds. The superclass stores on another queue, so that a stored response is found a little
    /// later.
    var wait: (Int) -> Void = { Thread.sleep(forTimeInterval: Double($0) / 1_000) }

    /// About 50 ms in all.
    private static let pauses = [1, 2, 5, 10, 15, 17]

    /// The superclass's object for a response, or that response if the object is not found. The entry's number
    /// identifies it: several entries of this cache have one key in the superclass.
    func copy(of response: CachedURLResponse) -> CachedURLResponse {
        let number = response.entryNumber
        func copy() -> CachedURLResponse? { find().flatMap { $0.entryNumber == number ? $0 : nil } }
        store(response)
        defer { remove() }
        if let copy = copy() { return copy }
        for pause in Self.pauses {
            wait(pause)
            if let copy = copy() { return copy }
        }
        return response
    }
}
