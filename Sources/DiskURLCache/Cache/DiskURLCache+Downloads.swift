import Foundation

// A download that goes on where an earlier one broke off.

extension DiskURLCache {
    /// Goes on with the part that the file has, or begins anew.
    /// - Parameters:
    ///   - link: of the session that is to load; nil for the cache's own.
    ///   - begin: begins a load.
    func resume(
        _ request: URLRequest, _ file: DestinationFile, by link: SessionLink?,
        _ begin: (URLRequest) async throws -> ResponseStream
    ) async throws -> (response: HTTPURLResponse, report: Report) {
        let resource = DownloadPart.resource(of: request)
        if let part = file.part(of: resource) {
            let (answers, replacesErrors) = await whatIsStored(for: request, besides: part, by: link)
            if !answers, let whole = try await goOn(request, with: part, file, replacesErrors, begin) { return whole }
        }
        let stream = try await begin(request)
        if stream.delivered.status == 200 {
            let part = DownloadPart(of: stream.delivered, resource: resource)
            try await file.begin(part)
            try await copy(stream, to: file, length: part?.length)
            try file.publish()
        } else {
            // An error is no new version, so the part stays.
            try await file.sibling().take(stream)
        }
        return (stream.response, stream.report)
    }

    /// - Returns: whether what is stored answers by itself, or with a 304; and whether it replaces an error.
    private func whatIsStored(
        for request: URLRequest, besides part: DownloadPart, by link: SessionLink?
    ) async -> (answers: Bool, replacesErrors: Bool) {
        var sender = link ?? directLink
        let asked = sender.withCookies(Request(link?.effectiveRequest(request) ?? request))
        return await perform { [sender] in
            let hop = $0.core.resolve(asked, variant: sender.keyVariant)
            let stored = StoredResponses.find(for: hop, in: $0.core).read()
            let hasWhole = stored.variants.contains { !$0.metadata.isPart && $0.response.entityTag?.text == part.tag }
            let asks = StoredResponses.leaveAQuestion(about: asked, over: sender, in: $0.core)
            let decider = RequestDecider(
                request: hop.facts, variants: stored.variants, policy: hop.request.policy, options: stored.options,
                now: $0.core.now)
            return (hasWhole || !asks, decider.errorFallback().reuse != nil)
        }
    }

    /// Asks for the rest.
    /// - Parameter replacesErrors: whether what is stored takes the place of an error.
    /// - Returns: nil if all is to be asked for: the answer is not the rest of this response, or the whole contradicts
    ///   a digest.
    private func goOn(
        _ request: URLRequest, with part: DownloadPart, _ file: DestinationFile, _ replacesErrors: Bool,
        _ begin: (URLRequest) async throws -> ResponseStream
    ) async throws -> (response: HTTPURLResponse, report: Report)? {
        /// The part stays: this is another version, or an error.
        func take(_ stream: ResponseStream) async throws -> (response: HTTPURLResponse, report: Report) {
            try await file.sibling().take(stream)
            return (stream.response, stream.report)
        }
        let ticket = await perform { $0.core.store.ticket(at: $0.core.now) }
        let stream: ResponseStream
        do {
            stream = try await begin(part.asking(request))
        } catch {
            if replacesErrors { return try await take(begin(request)) }
            throw error
        }
        let answer = stream.delivered
        var part = part
        switch answer.status {
        case 206 where part.isCompleted(by: answer):
            try await file.begin(part)
            try await copy(stream, to: file, length: part.length)
        case 200, 206, 416: return nil
        case 500... where replacesErrors: return try await take(begin(request))
        default: return try await take(stream)
        }
        guard let sent = stream.reader.exchange(answer), let url = answer.url else { return nil }
        let whole = part.whole(by: sent.exchange, isShared: core.configuration.isShared)
        guard await perform({ [part] in $0.accepts(file, as: whole, part) }) else { return nil }
        try file.publish()
        if !sent.isPrivate {
            // It says how the two requests were handled, also by this cache.
            var kept = whole
            kept.fields.remove("Cache-Status")
            var stored = sent.request.urlRequest
            for name in RequestFacts.partialFieldNames { stored.setValue(nil, forHTTPHeaderField: name) }
            stored.cacheOptions = request.cacheOptions
            await perform { [kept, stored, reader = stream.reader] in
                let hop = $0.core.resolve(Request(stored), variant: reader.keyVariant)
                $0.core.store(kept, length: file.length, for: hop, ticket: ticket) { file.read($0) }
            }
        }
        let response = URLResponse.http(url: url, status: whole.status, fields: whole.fields)
        return (response as? HTTPURLResponse ?? stream.response, stream.report)
    }

    /// What comes of a body that breaks off stays.
    private func copy(_ stream: ResponseStream, to file: DestinationFile, length: Int?) async throws {
        do {
            try await stream.copy(to: file)
            if let length, file.length < length { throw URLError(.networkConnectionLost) }
        } catch {
            await file.keep()
            throw error
        }
    }

    /// Whether the whole has its length, and matches the digests that its head states.
    private func accepts(_ file: DestinationFile, as whole: StoredResponse, _ part: DownloadPart) -> Bool {
        guard file.length == part.length else { return false }
        // Whatever the settings say of answers in one piece: this one was put together here.
        guard var digests = BodyDigests(whole.fields, status: whole.status, method: "GET", isDecoded: true) else {
            return true
        }
        return file.read { digests.update($0) } && digests.contradiction == nil
    }
}
