#if canImport(FoundationNetworking)
    import Foundation
    import FoundationNetworking

    /// The answer to a `POST` that is also the answer to a `GET` (RFC 9110 §9.3.3), collected while it passes
    /// through Foundation's loader, and then stored for that `GET`.
    struct PostRepresentation {
        private let cache: any LoadHost
        /// The request that the answer will serve.
        private let hop: KeyedRequest
        private let response: StoredResponse
        /// Nil once it is larger than may be stored.
        private var body: Data? = Data()

        /// Nil if the answer may not be stored. To be called on the queue on which Foundation calls protocols.
        init?(of task: URLSessionTask, requestTime: Date, cache: (any LoadHost)?) {
            let link = SessionLink(task)
            // Foundation hands the body to a data delegate without the protocol's client: it cannot be collected.
            guard let cache, let sent = task.currentRequest, sent.httpMethod == "POST",
                let response = task.response as? HTTPURLResponse, link.servesTasks, !link.deliversPieces(of: task)
            else { return nil }
            let request = link.effectiveRequest(sent)
            var get = request
            get.httpMethod = "GET"
            get.httpBody = nil
            let hop = cache.keyed(DiskURLCache.Request(get), variant: nil)
            guard hop.key != nil else { return nil }
            let exchange = Exchange(
                request: RequestFacts(request), url: hop.request.url, revalidation: nil, candidates: [],
                status: response.statusCode, fields: HeaderFields(response), requestTime: requestTime,
                responseTime: cache.now)
            let options = cache.cachingOptions(for: hop.target, response: exchange.fields)
            guard case .store(let stored, _) = Storability.verdict(for: exchange, options: options),
                stored.method == "GET"
            else { return nil }
            self.cache = cache
            self.hop = hop
            self.response = stored
        }

        mutating func append(_ data: Data) {
            body?.append(data)
            if let count = body?.count, count > cache.store.largestStorableBody { body = nil }
        }

        /// - Parameter ticket: taken before the request was sent.
        func store(_ ticket: StoreTicket?) {
            guard let body else { return }
            let proposed = DeliveredHead(to: hop.request, status: response.status, fields: response.fields).response
            let cached = CachedURLResponse(response: proposed, data: body, userInfo: nil, storagePolicy: .allowed)
            guard let edited = cache.admit(cached, for: hop.request, proposed: cached) else { return }
            var response = response
            if let fields = edited.fields { response.fields = fields }
            if let status = edited.status { response.status = status }
            _ = cache.insert(response, .memory(edited.data ?? body), edited: edited, for: hop, ticket: ticket)
        }
    }
#endif
