import Foundation

extension DiskURLCache {
    /// A request as plain values: everything that the cache looks at, and that a `DiskURLCache.Transport` sends.
    ///
    /// A `URLRequest` is made of it only for code that needs one: `URLSession`, and closures of the app.
    public struct Request: Sendable {
        /// By reference: a load copies its request a dozen times, and changes it once or twice.
        private var contents: Contents

        private final class Contents: Sendable {
            let values: Values

            init(_ values: Values) { self.values = values }
        }

        private struct Values: Sendable {
            var method: String
            var url: String
            var headerFields: HeaderFields
            var body: Data?
            var hasBodyStream: Bool
            let timeout: TimeInterval
            let options: Options?
            let policy: ReusePolicy
            /// The `URLRequest` from which this was made, if any. It may have properties for Foundation's own use that
            /// this type does not have.
            var original: URLRequest?
            /// What is to be changed in the original.
            var changes: Parts = []
        }

        private struct Parts: OptionSet {
            let rawValue: UInt8

            static let method = Parts(rawValue: 1)
            static let url = Parts(rawValue: 2)
            static let body = Parts(rawValue: 4)
            static let fields = Parts(rawValue: 8)
        }

        private mutating func change(_ part: Parts, _ change: (inout Values) -> Void) {
            var values = contents.values
            change(&values)
            values.changes.insert(part)
            contents = Contents(values)
        }

        /// The method as it is sent (RFC 9110 §9.1: `get` is not `GET`). Foundation gives it in upper case.
        public var method: String {
            get { contents.values.method }
            set { change(.method) { $0.method = newValue } }
        }
        /// The absolute URL.
        public var url: String {
            get { contents.values.url }
            set { change(.url) { $0.url = newValue } }
        }
        /// The body; nil for a request without one, and for a body that is a stream.
        public var body: Data? {
            get { contents.values.body }
            set { change(.body) { $0.body = newValue } }
        }
        package var headerFields: HeaderFields {
            get { contents.values.headerFields }
            set { change(.fields) { $0.headerFields = newValue } }
        }
        /// Whether the body is a stream. The cache does not know its bytes, so that the request has no key.
        package var hasBodyStream: Bool { contents.values.hasBodyStream }
        /// The seconds within which the head of the answer must arrive.
        package var timeout: TimeInterval { contents.values.timeout }
        /// How the response is kept, with precedence over all rules; nil if only rules and the configuration decide.
        package var options: Options? { contents.values.options }
        var hasOptions: Bool { if case .some = contents.values.options { true } else { false } }
        package var policy: ReusePolicy { contents.values.policy }

        /// Nil if the text is not a URL.
        package init?(
            method: String, text: String, headerFields: HeaderFields, body: Data?, hasBodyStream: Bool,
            timeout: TimeInterval, options: Options?
        ) {
            guard let url = Self.isWellFormed(text) ? text : URL(string: text)?.absoluteString else { return nil }
            contents = Contents(
                Values(
                    method: method, url: url, headerFields: headerFields, body: body,
                    hasBodyStream: hasBodyStream, timeout: timeout, options: options, policy: .useProtocol))
        }

        /// Whether this is a copy of the other request, and neither was changed since.
        func isIdentical(to other: Request) -> Bool { contents === other.contents }

        /// Whether an origin cannot tell the requests apart. The cookies that an answer sets make a difference.
        func asksTheSame(as other: Request) -> Bool {
            let (mine, theirs) = (contents.values, other.contents.values)
            return mine.method == theirs.method && mine.url == theirs.url && mine.headerFields == theirs.headerFields
                && mine.body == theirs.body
        }

        /// For a redirect that changes the method to GET.
        mutating func dropBody() {
            change(.body) { values in
                values.body = nil
                values.hasBodyStream = false
            }
        }

        package init(_ request: URLRequest) { self.init(request, url: request.url) }

        /// - Parameters:
        ///   - url: of the request, which the caller has read.
        ///   - policy: in place of the request's.
        init(_ request: URLRequest, url: URL?, policy: ReusePolicy? = nil) {
            let method = request.httpMethod ?? "GET"
            contents = Contents(
                Values(
                    method: method == "GET" ? method : method.uppercased(), url: url?.absoluteString ?? "",
                    headerFields: HeaderFields(request), body: request.httpBody,
                    hasBodyStream: request.httpBodyStream != nil, timeout: request.timeoutInterval,
                    options: request.mayCarryOptions ? request.cacheOptions : nil,
                    policy: policy ?? ReusePolicy(request.cachePolicy), original: request))
        }

        /// Whether a session adds its cookies. Of requests that were no `URLRequest`, the app sees to the cookies.
        package var handlesCookies: Bool { contents.values.original?.httpShouldHandleCookies ?? false }

        /// Nil if Foundation makes no URL of the text.
        package var foundationURL: URL? { originalURL ?? URL(string: url) }

        /// The URL that this was made with; nil if it was made of text.
        var originalURL: URL? { contents.values.changes.contains(.url) ? nil : contents.values.original?.url }

        /// The request as a `URLRequest`: the original one with all changes, if there is an original.
        package var urlRequest: URLRequest {
            guard var request = contents.values.original else { return newURLRequest }
            let changes = contents.values.changes
            if changes.contains(.method) { request.httpMethod = method }
            if changes.contains(.url) { request.url = URL(string: url) }
            if changes.contains(.body) { request.httpBody = body }
            if changes.contains(.fields) { request.allHTTPHeaderFields = headerFields.dictionary }
            return request
        }

        private var newURLRequest: URLRequest {
            var request = URLRequest(url: foundationURL ?? Self.noURL, timeoutInterval: timeout)
            request.httpMethod = method
            request.httpBody = body
            request.httpShouldHandleCookies = false
            request.allHTTPHeaderFields = headerFields.dictionary
            request.cacheOptions = options
            return request
        }
    }
}

extension DiskURLCache.Request {
    /// The URL's text for files: without user name and password.
    package var urlWithoutCredentials: String? {
        url.contains(byte: UInt8(ascii: "@")) ? foundationURL?.withoutCredentials : url
    }

    /// Whether a text is surely a URL that Foundation would not change. False for some rare URLs as well.
    private static func isWellFormed(_ text: String) -> Bool {
        guard URLCanonicalizer.isNormal(text) else { return false }
        return text.utf8.withContiguousStorageIfAvailable { $0.allSatisfy(isKept) } ?? false
    }

    /// Whether Foundation leaves a byte as it is, wherever it is in a URL.
    private static func isKept(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "%"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "`"),
            UInt8(ascii: "[")...UInt8(ascii: "^"), UInt8(ascii: "{")...UInt8(ascii: "}"):
            false
        default: byte > 0x20 && byte < 0x7F
        }
    }

    /// The seconds that count in a session with this timeout: a request does not tell whether its 60 seconds were set.
    func timeout(ofSession standard: @autoclosure () -> TimeInterval) -> TimeInterval {
        timeout == 60 ? standard() : timeout
    }

    /// A URL for objects of Foundation that must have one.
    package static let noURL = URL(fileURLWithPath: "/")
}

extension HeaderFields {
    init(_ request: URLRequest) {
        self.init(dictionary: request.allHTTPHeaderFields ?? [:])
    }
}

extension RequestFacts {
    /// - Parameter key: if it replaces `Authorization`, the facts are without credentials: a response with
    ///   `Vary: Authorization` is for the user whom the key names, whatever credentials were sent.
    package convenience init(_ request: DiskURLCache.Request, key: RequestKey?, salt: CredentialSalt? = nil) {
        let namesUser = key?.replacesAuthorization == true
        var fields = request.headerFields
        if namesUser { fields.remove("Authorization") }
        self.init(method: request.method, url: namesUser ? nil : request.url, fields: fields, salt: salt)
    }
}

extension ReusePolicy {
    init(_ policy: URLRequest.CachePolicy) {
        switch policy {
        case .reloadIgnoringLocalCacheData, .reloadIgnoringLocalAndRemoteCacheData: self = .reloadIgnoring
        case .returnCacheDataElseLoad: self = .elseLoad
        case .returnCacheDataDontLoad: self = .dontLoad
        case .reloadRevalidatingCacheData: self = .revalidate(because: .cachePolicy)
        default: self = .useProtocol
        }
    }
}

extension DiskURLCache.Request: PrintedByDescription {
    /// Method, URL, names of the header fields and length of the body, in one line. Values of header fields, user
    /// name, password, query and body are not printed.
    package var printedText: String {
        var parts = ["\(method) \(foundationURL?.printed ?? "without a URL")"]
        if !headerFields.fields.isEmpty { parts.append("fields: \(headerFields.printedNames)") }
        if let body { parts.append("body: \(body.count) bytes") }
        if hasBodyStream { parts.append("body: a stream") }
        return parts.joined(separator: ", ")
    }
}
