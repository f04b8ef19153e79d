/// The rules of a shared cache that a private one does not have (RFC 9111 §3, §3.5, §5.2.2).
///
/// The lifetime that `s-maxage` gives is in `Freshness`, the fields that `private="…"` withholds in `StorableFields`.
enum SharedCache {
    /// Why a shared cache must not keep a response that a private one may keep.
    ///
    /// - Parameters:
    ///   - fields: of the response as it was received.
    ///   - said: the directives of the response.
    ///   - request: the one that brought it.
    static func prohibition(
        of fields: HeaderFields, said: ResponseDirectives, asked request: RequestFacts, options: CachingOptions
    ) -> DiskURLCache.Reason? {
        if said.isPrivate { return .private }
        if said.targetedField != nil, said.noStore, !said.mustUnderstand { return .noStore }
        // No rule of RFC 9111, but of every well-known shared cache: a cookie is for one user.
        if fields["Set-Cookie"] != nil || fields["Set-Cookie2"] != nil { return .setCookie }
        let isForAll = said.isPublic || said.sharedMaxAge != nil
        // §3.5 gives `must-revalidate` that meaning too, but for `Authorization` only: many servers send it to all, and
        // mean nothing but §5.2.2.2.
        if !isForAll, request.isAuthorized, !said.mustRevalidate { return .authorization }
        if options.isCautious, !options.keysCookie, request.fields["Cookie"] != nil, !isForAll,
            VaryKey.names(in: fields["Vary"])?.contains("cookie") != true
        {
            return .cookie
        }
        return nil
    }
}

extension ResponseDirectives {
    /// Whether a stale response may not be used before the origin has confirmed it (RFC 9111 §5.2.2.2, §5.2.2.8).
    /// `s-maxage` says so to shared caches, too (§5.2.2.10).
    package func mustRevalidate(inSharedCache isShared: Bool) -> Bool {
        mustRevalidate || (isShared && (proxyRevalidate || sharedMaxAge != nil))
    }
}
