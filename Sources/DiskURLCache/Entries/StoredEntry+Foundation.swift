import Dispatch
import Foundation

// The bridge between Foundation's response objects and the values that the layers keep.

extension EntryMetadata.Response {
    /// - Parameter fields: of an HTTP response. They come from a dictionary: each name once, repeated fields joined by
    ///   Foundation.
    init(_ response: URLResponse, fields: HeaderFields?, method: String, vary: VaryKey, time: Date) {
        if let response = response as? HTTPURLResponse, let fields {
            self = .http(
                StoredResponse(
                    method: method, status: response.statusCode, fields: fields,
                    requestTime: time, responseTime: time, vary: vary))
        } else {
            self = .other(
                mimeType: response.mimeType, expectedContentLength: response.expectedContentLength,
                textEncodingName: response.textEncodingName)
        }
    }

    func urlResponse(url: URL) -> URLResponse {
        switch self {
        case .http(let response): .http(url: url, status: response.status, fields: response.fields)
        case .other(let mimeType, let length, let encoding):
            URLResponse(
                url: url, mimeType: mimeType, expectedContentLength: Int(clamping: length), textEncodingName: encoding)
        }
    }
}

extension StoredResponse {
    /// The head as a load delivers it when no request was sent.
    /// - Parameters:
    ///   - age: `current_age` in seconds.
    ///   - cacheStatus: this cache's member of `Cache-Status`; nil when none is added.
    ///   - entry: the entry in memory, if there is one: it may have made the same head before.
    func deliveredHead(
        _ presentation: Presentation, age: Int64, to request: DiskURLCache.Request, cacheStatus: String?,
        madeBy entry: StoredEntry?
    ) -> DeliveredHead {
        func make() -> DeliveredHead {
            var head = presentation.head(of: self, age: age)
            if let cacheStatus { CacheStatus.append(cacheStatus, to: &head.fields) }
            return DeliveredHead(to: request, status: head.status, fields: head.fields)
        }
        let form = StoredEntry.DeliveredForm(
            url: request.url, presentation: presentation, age: age, cacheStatus: cacheStatus)
        return entry?.deliveredHead(form, make) ?? make()
    }
}

extension URLResponse {
    /// An `HTTPURLResponse` with these fields.
    static func http(url: URL, status: Int, fields: HeaderFields) -> URLResponse {
        let dictionary = fields.dictionary
        // The initialiser never fails, although it is declared to; a plain response is better than a crash.
        return HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: dictionary)
            ?? URLResponse(url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
    }
}

extension HeaderFields {
    package init(_ response: HTTPURLResponse) {
        var fields: [Field] = []
        let dictionary = response.allHeaderFields
        fields.reserveCapacity(dictionary.count)
        for (name, value) in dictionary {
            guard let name = Self.string(name.base) else { continue }
            fields.append(Field(name: name, value: Self.string(value) ?? "\(value)"))
        }
        self.init(fields)
    }

    /// The value as a string; nil if it is not one. Casting a dozen values by `as?` would take a seventh of a store.
    private static func string<Value>(_ value: Value) -> String? {
        // `Value` is `String` here, so the cast changes nothing.
        Value.self == String.self ? unsafeBitCast(value, to: String.self) : value as? String
    }
}

extension EntryMetadata {
    /// The response's URL; nil when the record holds none.
    var foundationURL: URL? { url.flatMap { URL(string: $0) } }
}

extension StoredVariant {
    /// Whether `URLCache`'s own methods may hand the variant out for a request. Only an entry in memory is asked again,
    /// so that only there it is worth noting what the request had.
    func answers(_ request: inout FieldDigests) -> Bool {
        if layer != .memory { return metadata.answers(&request) }
        return entry?.answers(&request) ?? metadata.answers(&request)
    }
}

extension StoredEntry {
    /// The key in `userInfo` under which a response for Apple's loader has the number of its entry.
    fileprivate static let numberKey = "DiskURLCache.entry"

    /// The entry in the form for Apple's loader, as a new object that carries the number of its entry: see
    /// `SystemHead`.
    func makeSystemResponse(requestedURL: URL, hidesVary: Bool) -> CachedURLResponse {
        var metadata = metadata
        if var response = metadata.http {
            response.fields = SystemHead.handedOut(response, hidesVary: hidesVary)
            metadata.response = .http(response)
        }
        metadata.userInfo[Self.numberKey] = .integer(Int64(truncatingIfNeeded: metadata.sequence))
        return StoredEntry(metadata: metadata, body: body).makeCachedURLResponse(requestedURL: requestedURL)
    }

    func makeCachedURLResponse(requestedURL: URL) -> CachedURLResponse {
        let userInfo = metadata.userInfo.isEmpty ? nil : metadata.userInfo.mapValues(\.foundationValue)
        let policy = metadata.placement == .memoryOnly ? URLCache.StoragePolicy.allowedInMemoryOnly : .allowed
        return .make(
            head: metadata.response, url: metadata.url, requestedURL: requestedURL, data: body, userInfo: userInfo,
            storagePolicy: policy)
    }
}

extension CachedURLResponse {
    private static let releaseQueue = DispatchQueue(label: "DiskURLCache.release")

    /// Releases a response that a caller stored. Objects of the app that it holds are released on a queue: their
    /// `deinit` may use the cache, which drops the last reference under its own locks.
    ///
    /// Unmanaged, since a strong reference of the caller could be released after that of the queue.
    static func release(_ held: Unmanaged<CachedURLResponse>) {
        if held.takeUnretainedValue().mayHoldObjectsOfTheApp {
            releaseQueue.async { held.release() }
        } else {
            held.release()
        }
    }

    /// Other than the values and the classes of Foundation. Nearly no response does.
    private var mayHoldObjectsOfTheApp: Bool {
        // The properties of a class of the app are code of the app.
        if type(of: self) != CachedURLResponse.self || userInfo?.isEmpty == false { return true }
        let type = type(of: response)
        return type != HTTPURLResponse.self && type != URLResponse.self
    }

    /// The number of the entry from which the response was made for Apple's loader.
    var entryNumber: Int64? { (userInfo?[StoredEntry.numberKey] as? NSNumber)?.int64Value }

    /// The values of `userInfo` that can be written to disk, and the keys of the others.
    var persistentUserInfo: (values: [String: PropertyValue], lost: [String]) {
        var values: [String: PropertyValue] = [:]
        var lost: [String] = []
        guard let userInfo, !userInfo.isEmpty else { return (values, lost) }
        for (key, value) in userInfo where key != AnyHashable(StoredEntry.numberKey) {
            if let name = key.base as? String, let value = PropertyValue(value) {
                values[name] = value
            } else {
                lost.append("\(key)")
            }
        }
        return (values, lost.sorted())
    }
}
