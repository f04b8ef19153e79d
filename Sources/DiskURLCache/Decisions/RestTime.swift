import Foundation

// When the app does not want the origin to be asked again yet, whatever its last answer says
// (`DiskURLCache.Options.minimumInterval`, `errorLifetime`).

extension ReuseFacts {
    /// Why the response answers without a new request, by the app's wish alone; nil if the origin may be asked.
    ///
    /// Counts from the arrival: the origin's clock makes no difference.
    func rest(_ options: CachingOptions, now: Date) -> DiskURLCache.Reason? {
        guard let rest = rest(options), staleSince == nil else { return nil }
        let elapsed = now.timeIntervalSince(responseTime)
        // If the clock was set back, the time is less than 0.
        return elapsed >= 0 && elapsed < Double(rest.seconds) ? rest.reason : nil
    }

    /// For how long the response answers by the app's wish, and by which one; nil without any. An origin that sends an
    /// error and names a time itself (RFC 9110 §10.2.3) is not asked sooner, for at most a day.
    func rest(_ options: CachingOptions) -> (seconds: Int64, reason: DiskURLCache.Reason)? {
        guard options.restsAfterAnswers else { return nil }
        let lifetime = isError ? options.errorLifetime : nil
        guard let wished = [options.minimumInterval, lifetime].compactMap(\.self).max() else { return nil }
        let named = isError ? min(retryAfter ?? 0, 86_400) : 0
        return (max(wished, named), options.minimumInterval == wished ? .minimumInterval : .errorLifetime)
    }
}

extension CachingOptions {
    /// Whether the app has set one of the two times.
    var restsAfterAnswers: Bool { self.minimumInterval != nil || self.errorLifetime != nil }
}

extension Storability {
    /// The verdict on a response that may not be stored, if the app wants it to answer for a while all the same: it is
    /// held in memory, apart from what is stored.
    static func holding(
        _ exchange: Exchange, refusedBecause reason: DiskURLCache.Reason, options: CachingOptions
    ) -> StorageVerdict? {
        guard options.restsAfterAnswers, isHoldable(exchange.request, refusedBecause: reason) else { return nil }
        guard (200...599).contains(exchange.status), exchange.status != 206, exchange.status != 304 else { return nil }
        // Whatever else forbids to store it: `no-store`, `Vary: *`, or that a `HEAD` was answered.
        if StatusCode.isAboutRequestOnly(exchange.status) { return nil }
        if isForOneUser(exchange, options) { return nil }
        guard StorableFields.areWellFormed(exchange.fields) else { return nil }
        var vary = VaryKey(response: exchange.fields, request: exchange.request)
        // The app asks for this URL's last answer, on whatever that depends.
        if vary.matchesNothing { vary = .none }
        let response = StoredResponse(
            method: exchange.request.method, status: exchange.status,
            fields: StorableFields.filtered(exchange.fields, isShared: options.isShared),
            requestTime: exchange.requestTime, responseTime: exchange.responseTime, vary: vary)
        guard ReuseFacts(response).rest(options, now: exchange.responseTime) != nil else { return nil }
        return .hold(response, because: reason)
    }

    private static func isHoldable(_ request: RequestFacts, refusedBecause reason: DiskURLCache.Reason) -> Bool {
        if request.method == "HEAD", !request.directives.noStore {
            // The answer to a `HEAD` is never stored; the reason says that of the method.
            return reasons.contains(reason) || reason == .methodNotCached
        }
        return request.isRetrieval && reasons.contains(reason)
    }

    /// Those that are not about credentials or a damaged answer.
    private static let reasons: Set<DiskURLCache.Reason> = [
        .noStore, .varyAsterisk, .notReusable, .statusNotCacheable, .statusNotUnderstood, .aboutSending,
    ]

    private static func isForOneUser(_ exchange: Exchange, _ options: CachingOptions) -> Bool {
        guard options.isShared else { return false }
        let said = ResponseDirectives(exchange.fields, targeted: options.targetedFields)
        return SharedCache.prohibition(
            of: exchange.fields, said: said, asked: exchange.request, options: options) != nil
    }
}
