import Foundation

/// Learns whether Apple's loader uses the stored responses that it is given, and in which form: no machine of this
/// project can tell, and the next version of the system may differ.
///
/// A load that uses its response stores nothing. A load that was given a fresh response, and then stores another one
/// (200), has refused it. After five refusals, if they are at least half of such loads, responses with `Vary` are given
/// in the other form (see `SystemHead`). If that does not help, or if responses without `Vary` are refused, the app is
/// told that this way does not cache.
struct SystemHits {
    enum Lesson: Equatable {
        case changedForm(hidesVary: Bool)
        case isRefused
    }

    /// A load that got a fresh response, and has not stored another one yet.
    private struct Offer {
        /// Of the task, which may be released: an address and a number in its session. Nobody keeps tasks alive here.
        let task: ObjectIdentifier
        let number: Int
        let hasVary: Bool
    }

    private struct Count {
        var offered = 0
        var refused = 0

        /// Loads that were cancelled store nothing either.
        var isClear: Bool { refused >= 5 && 2 * refused >= offered }
    }

    /// Whether `Vary` has another name in what the loader is given.
    private(set) var hidesVary: Bool
    private var hasChangedForm = false
    private var counts: [Bool: Count] = [:]
    private var offers: [Offer] = []
    /// Most loads use their response, and are then forgotten in this order.
    private static let limit = 64

    init(_ platform: Platform) { hidesVary = platform.hidesVary }

    /// - Parameter offered: whether the fresh response that the task got has `Vary`. Nil: it got none, or a stale one,
    ///   for which another one may well be stored.
    mutating func note(_ task: URLSessionTask, offered hasVary: Bool?) {
        let id = ObjectIdentifier(task)
        // Another task had this address before.
        offers.removeAll { $0.task == id }
        guard let hasVary else { return }
        if offers.count == Self.limit { offers.removeFirst() }
        offers.append(Offer(task: id, number: task.taskIdentifier, hasVary: hasVary))
        counts[hasVary, default: Count()].offered += 1
    }

    /// A task stores a response with status 200.
    mutating func noteStore(by task: URLSessionTask) -> Lesson? {
        let id = ObjectIdentifier(task)
        guard let index = offers.firstIndex(where: { $0.task == id && $0.number == task.taskIdentifier }) else {
            return nil
        }
        let hasVary = offers.remove(at: index).hasVary
        counts[hasVary, default: Count()].refused += 1
        guard counts[hasVary]?.isClear == true else { return nil }
        counts[hasVary] = nil
        guard hasVary, !hasChangedForm else { return .isRefused }
        hasChangedForm = true
        hidesVary.toggle()
        // These were given in the other form.
        offers.removeAll { $0.hasVary }
        return .changedForm(hidesVary: hidesVary)
    }
}

extension SystemHits.Lesson {
    var problem: DiskURLCache.Error {
        let details =
            switch self {
            case .changedForm(let hidesVary):
                "The system's own loader refused fresh responses with Vary. From now on it gets them"
                    + " \(hidesVary ? "with Vary under another name" : "with Vary as the server sent it")."
            case .isRefused:
                "The system's own loader asks for stored responses, and loads the fresh ones from the network as well."
            }
        return DiskURLCache.Error(.refusedBySystem, details: details)
    }
}

extension StoredEntry {
    /// Whether each cache would use the response again for this request: it states its lifetime, which is not about to
    /// end, and the request asks for nothing special.
    func isClearlyFresh(for request: URLRequest, now: Date) -> Bool {
        let asksForMore = ["Cache-Control", "Pragma", "If-None-Match", "If-Modified-Since"]
        guard let facts = reuseFacts, !facts.directives.noCache,
            [.useProtocolCachePolicy, .returnCacheDataElseLoad].contains(request.cachePolicy),
            asksForMore.allSatisfy({ request.value(forHTTPHeaderField: $0) == nil })
        else { return false }
        let freshness = Freshness(of: facts, options: CachingOptions(), now: now)
        return [.maxAge, .expires].contains(freshness.source) && freshness.timeToLive > 5
    }
}
