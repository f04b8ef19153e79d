import DiskURLCache
import Foundation

// The freshness of a response with its numbers, and advice that would change a decision.

extension Explainer {
    /// The arithmetic of RFC 9111 §4.2 with the numbers of this response, and its validators.
    mutating func sayFreshness(
        of response: StoredResponse, _ options: CachingOptions, _ topic: Topic, _ validatorsTopic: Topic
    ) {
        let reuse = ReuseFacts(response).governed(by: options)
        let freshness = Freshness(of: reuse, options: options, now: now)
        let (lifetime, section) = origin(of: freshness, reuse, response, options)
        say(topic, "Lifetime: \(freshness.lifetime) s, \(lifetime).", section)
        if let since = response.staleSince {
            say(topic, "Marked as stale \(span(max(0, now.timeIntervalSince(since)))) ago: its lifetime ended then.")
        }
        let arrival = reuse.ageOnArrival
        let since = freshness.age.subtractingSaturated(arrival.corrected)
        say(
            topic, "Age: \(freshness.age) s = \(arrival.corrected) s on arrival + \(since) s since then.",
            "RFC 9111 §4.2.3")
        if arrival.corrected > 0 {
            say(
                topic,
                "On arrival: the larger of \(arrival.value) s (Age) + \(arrival.delay) s (on the way), and"
                    + " \(arrival.apparent) s (time of arrival - Date).", "RFC 9111 §4.2.3")
        }
        if Age.isUnknown(reuse, now: now) {
            say(topic, "The clock was set back since it arrived: its age is not known, and counts as the greatest one.")
        }
        let sum = "\(freshness.lifetime) s - \(freshness.age) s"
        let rest = span(TimeInterval(freshness.staleness))
        if freshness.isFresh {
            say(topic, "Fresh: \(sum) leaves \(rest).", "RFC 9111 §4.2")
        } else {
            let why = freshness.lifetime == 0 ? "it has no lifetime" : "\(sum) leaves no time"
            let duration = freshness.staleness == 0 ? "" : "; stale for \(rest)"
            say(topic, "Stale: \(why)\(duration).", "RFC 9111 §4.2")
        }
        let names = ["ETag", "Last-Modified"].filter {
            $0 == "ETag" ? response.entityTag != nil : response.lastModified != nil
        }
        let validators = names.map { "\($0): \(response.fields[$0] ?? "")" }.joined(separator: ", ")
        say(
            validatorsTopic,
            isAskedConditionally && Revalidation.isValidatable(response, for: facts) && !names.isEmpty
                ? "\(validators): once stale, the origin can confirm it with a 304."
                : "It has no usable validator: once stale, the whole response is loaded again.", "RFC 9111 §4.3.1")
    }

    /// The source of the lifetime, and the section that defines it.
    private func origin(
        of freshness: Freshness, _ reuse: ReuseFacts, _ response: StoredResponse, _ options: CachingOptions
    ) -> (String, String?) {
        let isValid = reuse.statedLifetime(inSharedCache: options.isShared)?.seconds.isValid ?? true
        func directive(_ name: String, _ section: String) -> (String, String?) {
            let field = reuse.directives.targetedField ?? "Cache-Control"
            let name = isValid ? "" : "the invalid \(name) of "
            return ("from \(name)\(field): \(response.fields[field] ?? "")", isValid ? section : "RFC 9111 §4.2.1")
        }
        switch freshness.source {
        case .option: return ("set by the app (DiskURLCache.Options.lifetime)", nil)
        case .none where reuse.directives.hasMalformed:
            let field = reuse.directives.targetedField ?? "Cache-Control"
            return ("since a directive of \(field) cannot be read: \(response.fields[field] ?? "")", "RFC 9111 §4.2.1")
        case .none: return ("since there is no max-age, no Expires, and nothing to guess it from", "RFC 9111 §4.2.1")
        case .heuristic:
            let share = "\(Int(options.heuristicFraction * 100)) % of the \(span(reuse.unchangedFor ?? 0))"
            let limit = span(TimeInterval(options.heuristicLimit))
            return ("a guess: \(share) from Last-Modified to Date, at most \(limit)", "RFC 9111 §4.2.2")
        case .sharedMaxAge: return directive("s-maxage", "RFC 9111 §5.2.2.10")
        case .maxAge: return directive("max-age", "RFC 9111 §5.2.2.1")
        case .expires:
            let date = response.fields["Date"] ?? "absent: its arrival"
            return ("from Expires (\(response.fields["Expires"] ?? "")) minus Date (\(date))", "RFC 9111 §5.3")
        }
    }

    /// Advice that makes a stored response usable for longer, or cheaper.
    mutating func sayAdvice(_ response: StoredResponse, _ options: CachingOptions) {
        let reuse = ReuseFacts(response).governed(by: options)
        let said = reuse.directives
        let freshness = Freshness(of: reuse, options: options, now: now)
        switch freshness.source {
        case _ where said.noCache:
            say(
                .advice, "With no-cache each use is revalidated; with max-age, uses within that time are not.",
                "RFC 9111 §5.2.2.4")
        case .none:
            let app = reuse.isError ? "" : "; the app can set lifetime: .whenMissing(…) in a rule or in cacheOptions"
            say(.advice, "The origin could send Cache-Control: max-age=…\(app).", "RFC 9111 §5.2.2.1")
        case .heuristic:
            say(.advice, "The lifetime is a guess; a max-age from the origin would be reliable.", "RFC 9111 §4.2.2")
        case .sharedMaxAge, .maxAge, .expires:
            guard freshness.lifetime == 0 else { break }
            say(
                .advice, "The origin gives it no lifetime; a max-age above 0 would save the request.",
                "RFC 9111 §5.2.2.1")
        case .option: break
        }
        let isOldOnArrival = sayOldOnArrival(reuse, response, freshness)
        sayMisspelt(response)
        if !said.noCache, !said.mustRevalidate(inSharedCache: options.isShared), freshness.lifetime > 0,
            !isOldOnArrival, response.status < 400, reuse.staleWhileRevalidate(options) == nil
        {
            say(
                .advice, "With stale-while-revalidate=… it is used at once and refreshed in the background.",
                "RFC 5861 §3")
        }
        if isAskedConditionally, response.entityTag == nil, response.lastModified == nil,
            (200...299).contains(response.status)
        {
            say(
                .advice, "With an ETag or a Last-Modified, the origin could confirm it by a 304 without a body.",
                "RFC 9110 §8.8")
        }
        let selecting = Set(response.vary.fields.map(\.name)).intersection(["cookie", "user-agent", "referer"])
        if !selecting.isEmpty {
            let names = selecting.sorted().joined(separator: ", ")
            say(
                .advice,
                "Vary names \(names), which differs in most requests: few of them are answered from the store.",
                "RFC 9110 §12.5.5")
        }
    }

    /// Says that a response has no lifetime left when it arrives, and who is to blame. False if it has.
    private mutating func sayOldOnArrival(
        _ reuse: ReuseFacts, _ response: StoredResponse, _ freshness: Freshness
    ) -> Bool {
        let arrival = reuse.ageOnArrival
        guard freshness.lifetime > 0, arrival.corrected >= freshness.lifetime else { return false }
        if response.fields["Age"] != nil, arrival.value >= arrival.apparent {
            say(
                .advice,
                "It arrives stale: a cache on the way has kept it for \(arrival.value) s, and its lifetime is \(freshness.lifetime) s."
                    + " That cache should ask the origin sooner; lifetime: .always(…) in a rule or in cacheOptions bridges it.",
                "RFC 9111 §5.1")
        } else if response.fields["Age"] == nil {
            say(
                .advice,
                "It arrives stale: its Date is \(span(TimeInterval(arrival.apparent))) before its arrival, and no cache on the way says Age."
                    + " The origin's clock seems to be behind (or this one ahead).", "RFC 9110 §6.6.1")
        }
        return true
    }

    /// Directives that a cache knows (RFC 9111 §5.2.2, RFC 5861, RFC 8246).
    private static let knownDirectives = [
        "max-age", "s-maxage", "no-cache", "no-store", "no-transform", "must-revalidate", "proxy-revalidate",
        "must-understand", "private", "public", "immutable", "stale-while-revalidate", "stale-if-error",
    ]

    /// Names a directive that is nearly one that caches know: they ignore it as it is.
    private mutating func sayMisspelt(_ response: StoredResponse) {
        for directive in CacheControl(response.fields["Cache-Control"]).directives
        where !Self.knownDirectives.contains(directive.name) {
            func letters(_ name: String) -> String { name.filter(\.isLetter) }
            let meant = Self.knownDirectives.first {
                letters($0) == letters(directive.name) || Self.distance($0, directive.name) == 1
            }
            guard let meant else { continue }
            say(
                .advice, "Caches do not know the directive \(directive.name): did the origin mean \(meant)?",
                "RFC 9111 §5.2.3")
        }
    }

    /// How many letters have to be added, left out or replaced to make one text of the other.
    private static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left.utf8.prefix(64))
        let right = Array(right.utf8.prefix(64))
        var row = Array(0...right.count)
        for (line, letter) in left.enumerated() {
            var diagonal = row[0]
            row[0] = line + 1
            for (column, other) in right.enumerated() {
                let replaced = diagonal + (letter == other ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(replaced, row[column] + 1, diagonal + 1)
            }
        }
        return row[right.count]
    }

    /// `12 s`, `5 min`, `3 h`, `7 days`.
    func span(_ seconds: TimeInterval) -> String {
        let seconds = abs(seconds)
        guard seconds < 1e10 else { return "centuries" }
        if seconds < 120 { return "\(Int(seconds)) s" }
        if seconds < 7_200 { return "\(Int(seconds / 60)) min" }
        return seconds < 172_800 ? "\(Int(seconds / 3_600)) h" : "\(Int(seconds / 86_400)) days"
    }
}
