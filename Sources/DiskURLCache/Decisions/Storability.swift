import Foundation

/// May this response be stored, and as what (RFC 9111 §3)?
package enum Storability {
    package static func verdict(for exchange: Exchange, options: CachingOptions) -> StorageVerdict {
        if let refusal = exchange.refusal { return .refuse(refusal) }
        let verdict = verdictByHTTP(for: exchange, options: options)
        guard options.restsAfterAnswers, case .refuse(let reason) = verdict else { return verdict }
        return holding(exchange, refusedBecause: reason, options: options) ?? verdict
    }

    private static func verdictByHTTP(for exchange: Exchange, options: CachingOptions) -> StorageVerdict {
        let request = exchange.request
        let control = CacheControl(exchange.fields["Cache-Control"])
        let directives = ResponseDirectives(exchange.fields, control: control, targeted: options.targetedFields)
        // What a GET has brought answers a HEAD, and is updated by it (`HeadUpdate`). The answer to a POST that says it
        // is what a GET would get (RFC 9110 §9.3.3) may be left out.
        guard request.method != "HEAD", options.isCacheable(request.method) else { return .refuse(.methodNotCached) }
        if let reason = prohibition(ofStatus: exchange.status, to: request, said: directives) {
            return .refuse(reason)
        }
        var response = StoredResponse(
            method: request.method, status: exchange.status, fields: exchange.fields, requestTime: exchange.requestTime,
            responseTime: exchange.responseTime, vary: VaryKey(response: exchange.fields, request: request))
        if let reason = prohibition(of: response, by: exchange, said: directives, options: options) {
            return .refuse(reason)
        }
        guard (200...599).contains(exchange.status) else { return .refuse(.statusNotCacheable) }
        if exchange.status == 304 { return .refuse(.notModified) }
        if StatusCode.isAboutRequestOnly(exchange.status) { return .refuse(.aboutRequestOnly) }
        if StatusCode.isAboutSending(exchange.status) { return .refuse(.aboutSending) }
        let look = StorableFields.look(at: exchange.fields, control: control, isShared: options.isShared)
        guard look.areWellFormed else { return .refuse(.malformed) }
        let facts = ReuseFacts(response, directives: directives)
        let (lifetime, _) = Freshness.lifetime(of: facts, options: options)
        let rests = facts.rest(options, now: exchange.responseTime) != nil
        let servesOthers = rests || facts.needNoValidation(options, now: exchange.responseTime)
        response.fields = look.kept
        // RFC 9110 §6.6.1
        if !look.hasDate { response.fields.append("Date", HTTPDate.format(exchange.responseTime)) }

        var digests = FieldDigests(of: request.fields)
        let matching = exchange.variants.filter { $0.response.answers(request, &digests) }
        if exchange.status == 206 {
            guard PartialContent.isStorable(exchange, lifetime: lifetime, replacing: matching) else {
                return .refuse(.partialContent)
            }
        } else if ![200, 203, 204].contains(exchange.status), lifetime == 0,
            !(rests && StatusCode.isReplacement(exchange.status))
        {
            // An error or a redirect that is never fresh is not stored: it would replace a success, which can still be
            // used when the server fails or the cache is offline. A success without a lifetime is stored for that
            // purpose, and so is what replaces a success anyway, as long as the app lets it answer.
            return .refuse(
                StatusCode.isHeuristicallyCacheable(exchange.status) ? .notReusable : .statusNotCacheable)
        }
        return .store(
            response,
            replacing: exchange.variants.filter {
                replaces(response, $0.response, matches: matching.contains($0))
            }, servesOthers: servesOthers)
    }

    /// The reason not to store a response, whatever else it says: `no-store` of the request or the response (RFC 9111
    /// §3, §5.2.2.5), a `Vary` that no request matches (RFC 9111 §4.1), and in a shared cache a response for one user.
    /// Checked before every store and update.
    ///
    /// - Parameters:
    ///   - exchange: the one that brought the response, or its update.
    ///   - said: the directives of the response.
    static func prohibition(
        of response: StoredResponse, by exchange: Exchange, said: ResponseDirectives, options: CachingOptions
    ) -> DiskURLCache.Reason? {
        if let reason = prohibition(ofStatus: response.status, to: exchange.request, said: said) { return reason }
        if response.vary.matchesNothing { return .varyAsterisk }
        guard options.isShared else { return nil }
        return SharedCache.prohibition(
            of: exchange.fields, said: said, asked: exchange.request, options: options)
    }

    /// The part of it for which the response need not be made.
    private static func prohibition(
        ofStatus status: Int, to request: RequestFacts, said: ResponseDirectives
    ) -> DiskURLCache.Reason? {
        if request.directives.noStore { return .requestNoStore }
        if said.mustUnderstand {
            // RFC 9111 §5.2.2.3: a cache that understands the status code ignores `no-store`.
            return StatusCode.isUnderstood(status) ? nil : .statusNotUnderstood
        }
        return said.noStore ? .noStore : nil
    }

    /// The reason not to keep a stored response after an answer updated it.
    static func prohibition(
        ofUpdated response: StoredResponse, by exchange: Exchange, options: CachingOptions
    ) -> DiskURLCache.Reason? {
        let said = ResponseDirectives(response.fields, targeted: options.targetedFields)
        return prohibition(of: response, by: exchange, said: said, options: options)
            ?? (StorableFields.areWellFormed(response.fields) ? nil : .malformed)
    }

    /// A stored response is removed if the new one matches every request that it matches, since it would never be
    /// selected again. A variant with different `Vary` fields stays: it may be the only match for some requests.
    private static func replaces(_ new: StoredResponse, _ old: StoredResponse, matches: Bool) -> Bool {
        if new.status == 206 { return matches }
        if new.vary.fields.isEmpty || new.vary == old.vary { return true }
        return matches && old.vary.fields.isEmpty
    }
}
