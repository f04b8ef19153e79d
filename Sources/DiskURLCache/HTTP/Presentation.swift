import Foundation

/// The form in which a stored response answers a request.
package enum Presentation: Sendable, Equatable {
    /// Status, fields and body as stored.
    case whole
    /// Status and fields of a stored GET for a HEAD.
    case headersOnly
    /// 304 without a body: the stored response meets the request's own condition.
    case notModified
    /// 206: these bytes of the **stored body**, which are the bytes from `first` of a representation of `total` bytes.
    case range(Range<Int>, first: Int, total: Int)
    /// 416 without a body.
    case rangeNotSatisfiable(total: Int)

    /// Whether the answer has the status of the stored response: a stored redirect is a redirect for `HEAD`, too.
    var keepsStatus: Bool { self == .whole || self == .headersOnly }
}

/// Status and fields of a response made from the store.
package struct ResponseHead: Sendable, Equatable {
    package var status: Int
    package var fields: HeaderFields

    package init(status: Int, fields: HeaderFields) {
        self.status = status
        self.fields = fields
    }
}

extension Presentation {
    func status(of stored: StoredResponse) -> Int {
        switch self {
        case .whole, .headersOnly: stored.status
        case .notModified: 304
        case .range: 206
        case .rangeNotSatisfiable: 416
        }
    }

    /// The head that is delivered.
    ///
    /// - Parameter age: `current_age`, for a response that is reused without validation (RFC 9111 §4); nil after one:
    ///   the validating answer's own `Age` stays.
    func head(of stored: StoredResponse, age: Int64?) -> ResponseHead {
        var fields = stored.fields
        if let age {
            fields.set("Age", String(max(0, age)))
            // It counts from the arrival.
            if stored.status >= 400, let seconds = ReuseFacts.secondsOfRetryAfter(in: fields) {
                let resident = age - Age.OnArrival(of: stored).corrected
                fields.set("Retry-After", String(max(0, seconds - max(0, resident))))
            }
        }
        switch self {
        case .whole, .headersOnly:
            break
        case .notModified:
            // RFC 9110 §15.4.5: `Last-Modified` only if there is no `ETag`, which would imply it.
            fields = Self.ofEveryHead(fields, and: fields["ETag"] == nil ? "last-modified" : nil)
        case .range(let bytes, let first, let total):
            fields.set("Content-Range", "bytes \(first)-\(first.addingSaturated(bytes.count - 1))/\(total)")
            fields.set("Content-Length", String(bytes.count))
            // Of the stored body, not of these bytes (RFC 9530 §2).
            fields.remove("Content-Digest")
        case .rangeNotSatisfiable(let total):
            fields = Self.ofEveryHead(fields)
            fields.set("Content-Range", "bytes */\(total)")
            fields.set("Content-Length", "0")
        }
        return ResponseHead(status: status(of: stored), fields: fields)
    }

    /// The part of the stored body that is delivered.
    func body(of stored: Data) -> Data {
        if case .whole = self { return stored }
        let range = range(of: stored.count)
        return stored.dropFirst(range.lowerBound).prefix(range.count)
    }

    /// The range of that part in a body of `length` bytes.
    func range(of length: Int) -> Range<Int> {
        switch self {
        case .whole: 0..<length
        case .headersOnly, .notModified, .rangeNotSatisfiable: 0..<0
        // Never beyond the body, whatever the caller passes.
        case .range(let bytes, _, _): bytes.clamped(to: 0..<length)
        }
    }

    /// The fields that a head without a body must carry, too.
    private static func ofEveryHead(_ fields: HeaderFields, and other: String? = nil) -> HeaderFields {
        HeaderFields(
            fields.fields.filter { field in
                let name = field.name.lowercased()
                return namesOfEveryHead.contains(name) || name == other
            })
    }

    private static let namesOfEveryHead: Set<String> = [
        "age", "cache-control", "content-location", "date", "etag", "expires", "vary",
    ]
}

extension Presentation {
    /// How a stored whole response answers a request, or why it cannot.
    enum Fit: Sendable, Equatable {
        case presentation(Presentation)
        case unanswerable(DiskURLCache.Reason)
    }

    /// Conditions first, then the range (RFC 9110 §13.2.2). Both apply to a stored 200 only (§13.2.1).
    /// - Parameter length: of the stored, decoded body. `Content-Length` may say something else.
    static func fit(of stored: StoredResponse, length: Int, to request: RequestFacts) -> Fit {
        let whole = Presentation.Fit.presentation(request.method == "HEAD" ? .headersOnly : .whole)
        guard stored.status == 200, request.isRetrieval || request.method == "HEAD" else { return whole }
        if Preconditions.isNotModified(stored, for: request) { return .presentation(.notModified) }
        guard request.isRetrieval, let range = request.wish("Range"),
            Preconditions.rangeApplies(to: stored, for: request)
        else { return whole }
        switch RangeRequest(range) {
        case .malformed:
            return whole
        case .other:
            return .unanswerable(.unsupportedRange)
        case .single(let range):
            // Ranges count encoded bytes (RFC 9110 §14.1), but the platform has decoded the stored body.
            guard !stored.fields.nameCoding else { return .unanswerable(.rangeNotHeld) }
            let total = max(0, length)
            guard let bytes = range.resolved(total: total) else {
                return .presentation(.rangeNotSatisfiable(total: total))
            }
            return .presentation(.range(bytes, first: bytes.lowerBound, total: total))
        }
    }
}
