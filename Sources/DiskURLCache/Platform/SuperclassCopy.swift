import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Makes the superclass know a response that was read from disk: several reports say that Apple's loader ignores responses which a
/// subclass made anew, and takes those which the superclass's memory gave out.
///
/// The superclass holds the response for that moment only. So no removal and no memory warning has to reach it, and what it would
/// answer by rules of its own is never asked for.
struct SuperclassCopy {
    var store: (CachedURLResponse) -> Void
    var find: () -> CachedURLResponse?
    var remove: () -> Void
    /// Waits for some milliseconds. The superclass stores on a queue of its own, so that what was stored is found a little later.
    var wait: (Int) -> Void = { Thread.sleep(forTimeInterval: Double($0) / 1_000) }

    /// About 50 ms in all.
    private static let pauses = [1, 2, 5, 10, 15, 17]

    /// The superclass's object for a response, or that response where it is not found. Which one is meant the entry's number tells:
    /// the superclass has one key for what has several here.
    /// - Parameter waits: false on the main thread.
    func copy(of response: CachedURLResponse, waits: Bool) -> CachedURLResponse {
        let number = response.entryNumber
        func copy() -> CachedURLResponse? { find().flatMap { $0.entryNumber == number ? $0 : nil } }
        store(response)
        defer { remove() }
        if let copy = copy() { return copy }
        for pause in waits ? Self.pauses : [] {
            wait(pause)
            if let copy = copy() { return copy }
        }
        return response
    }
}
