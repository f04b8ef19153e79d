import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// The bridge between Foundation's response objects and the values that the layers keep.

extension EntryMetadata.Response {
    /// `fields` of an `HTTPURLResponse` come from a dictionary: each name once, repeated fields joined by Foundation.
    init(_ response: URLResponse, method: String, vary: VaryKey, time: Date) {
        if let response = response as? HTTPURLResponse {
            self = .http(
                StoredResponse(
                    method: method, status: response.statusCode, fields: HeaderFields(later: response),
                    requestTime: time, responseTime: time, vary: vary))
        } else {
            self = .other(
                mimeType: response.mimeType, expectedContentLength: response.expectedContentLength,
                textEncodingName: response.textEncodingName)
        }
    }

    func urlResponse(url: URL) -> URLResponse {
        switch self {
        case .http(let response): response.urlResponse(url: url)
        case .other(let mimeType, let length, let encoding):
            URLResponse(
                url: url, mimeType: mimeType, expectedContentLength: Int(clamping: length), textEncodingName: encoding)
        }
    }
}

extension StoredResponse {
    func urlResponse(url: URL) -> URLResponse {
        .http(url: url, status: status, fields: fields)
    }
}

extension URLResponse {
    /// An `HTTPURLResponse` with these fields.
    static func http(url: URL, status: Int, fields: HeaderFields) -> URLResponse {
        let dictionary = fields.dictionary
        #if canImport(FoundationNetworking)
            if let response = AssembledResponse.places?.response(url: url, status: status, fields: dictionary) {
                return response
            }
        #endif
        // The initialiser is failable by declaration only; a plain response would still beat a crash.
        return HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: dictionary)
            ?? URLResponse(url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
    }
}

extension HeaderFields {
    init(_ response: HTTPURLResponse) {
        #if canImport(FoundationNetworking)
            if let fields = Self.storedFields?.value(of: response, as: [String: String].self) {
                self.init(dictionary: fields)
                return
            }
        #endif
        var fields: [Field] = []
        let dictionary = response.allHeaderFields
        fields.reserveCapacity(dictionary.count)
        for (name, value) in dictionary {
            guard let name = name.base as? String else { continue }
            fields.append(Field(name: name, value: value as? String ?? "\(value)"))
        }
        self.init(fields)
    }

    #if canImport(FoundationNetworking)
        /// `allHeaderFields` makes a dictionary of another type for each call, which costs more than all else of a store.
        private static let storedFields = StoredProperty("_allHeaderFields", of: HTTPURLResponse.self)
    #endif

    /// Taken out of the response when first looked at, where that costs anything.
    init(later response: HTTPURLResponse) {
        #if canImport(FoundationNetworking)
            self.init(response)
        #else
            // Another class's accessors may not be for every thread.
            guard type(of: response) == HTTPURLResponse.self else {
                self.init(response)
                return
            }
            // A guess: most responses have about ten fields.
            self.init(estimatedSize: 800, later: { HeaderFields(response).fields })
        #endif
    }

    init(_ request: URLRequest) {
        self.init(dictionary: request.allHTTPHeaderFields ?? [:])
    }
}

extension HTTPURLResponse {
    /// One header field, the others left alone.
    func field(_ name: String) -> String? {
        #if canImport(FoundationNetworking)
            // Foundation would make a string in lower case of each name.
            HeaderFields(self)[name]
        #else
            value(forHTTPHeaderField: name)
        #endif
    }
}

extension StoredVariant {
    func answers(_ request: URLRequest) -> Bool {
        metadata.varyKey == .none ? metadata.http?.status != 206 : metadata.answers(HeaderFields(request))
    }
}

extension StoredEntry {
    /// The entry as Foundation's object, made anew.
    func makeCachedURLResponse(requestedURL: URL) -> CachedURLResponse {
        let userInfo = metadata.userInfo.isEmpty ? nil : metadata.userInfo.mapValues(\.foundationValue)
        let policy = metadata.isMemoryOnly ? URLCache.StoragePolicy.allowedInMemoryOnly : .allowed
        #if canImport(FoundationNetworking)
            return LazyCachedURLResponse(
                head: metadata.response, url: metadata.url, requestedURL: requestedURL, data: body, userInfo: userInfo,
                storagePolicy: policy)
        #else
            let url = metadata.url.flatMap { URL(string: $0) } ?? requestedURL
            return CachedURLResponse(
                response: metadata.response.urlResponse(url: url), data: body, userInfo: userInfo, storagePolicy: policy
            )
        #endif
    }
}

extension CachedURLResponse {
    /// `userInfo` as far as it can be written, and the keys that cannot.
    var persistentUserInfo: (values: [String: PropertyValue], lost: [String]) {
        var values: [String: PropertyValue] = [:]
        var lost: [String] = []
        guard let userInfo, !userInfo.isEmpty else { return (values, lost) }
        for (key, value) in userInfo {
            if let name = key.base as? String, let value = PropertyValue(value) {
                values[name] = value
            } else {
                lost.append("\(key)")
            }
        }
        return (values, lost.sorted())
    }
}
