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
        var part = file.part(of: resource)
        // What is stored by now answers, or is validated, as always.
        if part != nil, await isStored(request, by: link) { part = nil }
        if let part, let whole = try await goOn(request, with: part, file, begin) { return whole }
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

    private func isStored(_ request: URLRequest, by link: SessionLink?) async -> Bool {
        let hop = core.resolve(Request(link?.effectiveRequest(request) ?? request), variant: link?.keyVariant)
        guard let key = hop.key else { return false }
        return await perform { $0.core.store.contains(key, in: nil) }
    }

    /// Asks for the rest.
    /// - Returns: nil if all is to be asked for: the answer is not the rest of this response, or the whole contradicts
    ///   a digest.
    private func goOn(
        _ request: URLRequest, with part: DownloadPart, _ file: DestinationFile,
        _ begin: (URLRequest) async throws -> ResponseStream
    ) async throws -> (response: HTTPURLResponse, report: Report)? {
        let ticket = await perform { $0.core.store.ticket(at: $0.core.now) }
        let stream = try await begin(part.asking(request))
        let answer = stream.delivered
        var part = part
        switch answer.status {
        case 206 where part.isCompleted(by: answer):
            try await file.begin(part)
            try await copy(stream, to: file, length: part.length)
        case 200, 206, 416: return nil
        default:
            try await file.sibling().take(stream)
            return (stream.response, stream.report)
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
