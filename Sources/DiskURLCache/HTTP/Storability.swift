import Foundation

/// May this response be stored, and as what (RFC 9111 §3)?
enum Storability {
    static func verdict(for exchange: Exchange, options: CachingOptions) -> StorageVerdict {
        let request = exchange.request
        let requestDirectives = RequestDirectives(request.fields)
        let directives = ResponseDirectives(exchange.fields)
        guard var response = response(of: exchange, options: options) else { return .refuse(.method) }
        if requestDirectives.noStore { return .refuse(.requestNoStore) }
        if directives.mustUnderstand {
            // RFC 9111 §5.2.2.3: who understands the status code does as if `no-store` was not there.
            guard StatusCode.isUnderstood(exchange.status) else { return .refuse(.statusNotUnderstood) }
        } else if directives.noStore {
            return .refuse(.responseNoStore)
        }
        guard (200...599).contains(exchange.status) else { return .refuse(.statusNotCacheable) }
        if exchange.status == 304 { return .refuse(.notModified) }
        if StatusCode.isAboutRequestOnly(exchange.status) { return .refuse(.statusNotCacheable) }
        guard StorableFields.areWellFormed(exchange.fields) else { return .refuse(.malformed) }
        if response.vary.matchesNothing { return .refuse(.varyAsterisk) }
        let (lifetime, _) = Freshness.lifetime(of: ReuseFacts(response, directives: directives), options: options)
        response.fields = StorableFields.stored(exchange.fields, receivedAt: exchange.responseTime)

        let matching = exchange.candidates.indices.filter {
            exchange.candidates[$0].response.vary.matches(request.fields)
        }
        if exchange.status == 206 {
            guard PartialContent.isStorable(exchange, lifetime: lifetime, replacing: matching) else {
                return .refuse(.partialContent)
            }
        } else if request.method != "GET", response.method == "GET" {
            // RFC 9110 §9.3.3: only with explicit freshness does the answer to a POST stand for a later GET.
            guard lifetime > 0 else { return .refuse(.notReusable) }
            return .store(response, replacing: [])
        } else if ![200, 203, 204].contains(exchange.status), lifetime == 0 {
            // An error or a redirection that may not be reused as fresh is better not kept at all: it would take the
            // place of a good response that could still be served on an error or offline. A success is kept for that.
            return .refuse(
                StatusCode.isHeuristicallyCacheable(exchange.status) ? .notReusable : .statusNotCacheable)
        }
        return .store(
            response,
            replacing: exchange.candidates.indices.filter {
                replaces(response, exchange.candidates[$0].response, matches: matching.contains($0))
            })
    }

    /// The response as it would be stored; nil where the method cannot be.
    private static func response(of exchange: Exchange, options: CachingOptions) -> StoredResponse? {
        let request = exchange.request
        var method = request.method
        if method == "POST", !options.isCacheable(method), isOwnRepresentation(exchange) {
            method = "GET"
        } else if method == "HEAD" || !options.isCacheable(method) {
            return nil
        }
        return StoredResponse(
            method: method, status: exchange.status, fields: exchange.fields, requestTime: exchange.requestTime,
            responseTime: exchange.responseTime, vary: VaryKey(response: exchange.fields, request: request.fields))
    }

    /// RFC 9110 §9.3.3: a POST's 200 whose `Content-Location` is the target holds what a GET would get.
    private static func isOwnRepresentation(_ exchange: Exchange) -> Bool {
        guard exchange.status == 200, let target = exchange.url, let location = exchange.fields["Content-Location"]
        else { return false }
        // An empty reference is the target itself (RFC 3986 §4.4); Foundation makes no URL of it.
        if location.isEmpty { return true }
        return URL(string: location, relativeTo: target)?.absoluteURL == target.absoluteURL
    }

    /// A variant of other `Vary` fields stays beside the new one: it may be the only match of other requests. What the
    /// new one would always be preferred to goes.
    private static func replaces(_ new: StoredResponse, _ old: StoredResponse, matches: Bool) -> Bool {
        if new.status == 206 { return matches }
        return new.vary.fields.isEmpty || new.vary == old.vary || (matches && old.vary.fields.isEmpty)
    }
}
