import Foundation

/// Finds rules that make no sense, by themselves or beside the other rules.
enum RuleCheck {
    /// All problems in one error, for `DiskURLCache.openingError`; nil without one.
    static func summary(of problems: [DiskURLCache.Error]) -> DiskURLCache.Error? {
        guard let first = problems.first, problems.count > 1, case .invalidRule(let index) = first.code else {
            return problems.first
        }
        let words = problems.map(\.description).joined(separator: " ")
        return DiskURLCache.Error(first.code, details: String(words.dropFirst("Rule \(index): ".count)))
    }

    /// Of each rule that is wrong its fault, in the order of the rules.
    static func problems(in rules: [DiskURLCache.Rule], keyPolicies: Set<String>) -> [DiskURLCache.Error] {
        var seen: [String: DiskURLCache.Options] = [:]
        var problems: [DiskURLCache.Error] = []
        for (index, rule) in rules.enumerated() {
            let text: String?
            if case .nothing(var problem) = rule.match.kind {
                if let storage = rule.cacheOptions.storage, storage != .memoryAndDisk {
                    let place = storage == .never ? "out of the cache" : "off the disk"
                    problem += " Until then the rule keeps every response \(place), to be safe."
                }
                text = problem
            } else if rule.match.isByContentType, rule.cacheOptions.keyPolicy != nil {
                text = "the key is made before the content type is known; choose the policy by URL, host or request."
            } else if let problem = problem(in: rule.cacheOptions, keyPolicies: keyPolicies) {
                text = problem
            } else {
                text = conflict(of: rule, with: &seen)
            }
            if let text { problems.append(DiskURLCache.Error(.invalidRule(index: index), details: text)) }
        }
        return problems.isEmpty ? cancelled(in: rules) : problems
    }

    /// A rule for all requests with `storage: .never` takes the effect from rules by content type, except from those
    /// before it that set a storage themselves.
    private static func cancelled(in rules: [DiskURLCache.Rule]) -> [DiskURLCache.Error] {
        let last = rules.firstIndex {
            if case .all = $0.match.kind { $0.cacheOptions.storage == .never } else { false }
        }
        guard let last else { return [] }
        return rules.enumerated().compactMap { index, rule in
            guard case .contentType = rule.match.kind, index > last || rule.cacheOptions.storage == nil else {
                return nil
            }
            let advice =
                index < last
                ? "say storage: .memoryAndDisk in this rule" : "move this rule before it, and give it a storage"
            return DiskURLCache.Error(
                .invalidRule(index: index), details: "rule \(last) keeps every response out of the cache; \(advice).")
        }
    }

    private static func problem(in cacheOptions: DiskURLCache.Options, keyPolicies: Set<String>) -> String? {
        var durations = [
            cacheOptions.staleWhileRevalidate, cacheOptions.staleIfError, cacheOptions.minimumDiskLifetime,
            cacheOptions.minimumInterval, cacheOptions.errorLifetime,
        ]
        switch cacheOptions.lifetime {
        case .whenMissing(let time)?, .always(let time)?, .atLeast(let time)?: durations.append(time)
        case nil: break
        }
        for case let duration? in durations {
            // Not a number is not 0 or more either.
            guard duration.seconds >= 0, duration.seconds.isFinite else {
                return "lengths of time are finite, and 0 or more."
            }
        }
        if let name = cacheOptions.keyPolicy, !keyPolicies.contains(name) {
            return "there is no key policy \"\(name)\" in Configuration.keyPolicies."
        }
        if cacheOptions == DiskURLCache.Options() {
            return "the options set nothing; leave the rule out."
        }
        var rest = cacheOptions
        rest.storage = nil
        // Concerns requests that are never stored above all.
        rest.invalidatesURL = nil
        if cacheOptions.storage == .never, rest != DiskURLCache.Options() {
            return "storage: .never makes the other options meaningless; remove them, or the storage."
        }
        if cacheOptions.storage == .memoryOnly, cacheOptions.isPinned == true || cacheOptions.minimumDiskLifetime != nil
        {
            return "pins and disk lifetimes have no effect with storage: .memoryOnly; remove them."
        }
        return nil
    }

    /// A second rule for the same pattern may set further properties. If it sets a property of the first rule to a
    /// different value, that value would never apply.
    private static func conflict(
        of rule: DiskURLCache.Rule, with seen: inout [String: DiskURLCache.Options]
    ) -> String? {
        switch rule.match.kind {
        case .all, .url, .path, .host, .contentType: break
        // What a closure does is not known.
        case .request, .json, .nothing: return nil
        }
        let name = rule.match.description
        var merged = seen[name] ?? DiskURLCache.Options()
        merged.complete(from: rule.cacheOptions)
        var other = rule.cacheOptions
        other.complete(from: seen[name] ?? DiskURLCache.Options())
        guard merged == other else { return "an earlier rule for the same pattern says otherwise; keep one of them." }
        seen[name] = merged
        return nil
    }
}
