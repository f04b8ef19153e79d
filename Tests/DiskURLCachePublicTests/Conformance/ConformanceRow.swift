import DiskURLCache
import Foundation

/// One row of the conformance table: requests that a client makes one after the other, what the origin answers, and
/// what the client must see.
///
/// Ids and kinds are those of the public suite for HTTP caches (http-tests/cache-tests), so that results can be
/// compared with those of other caches.
struct ConformanceRow: Sendable {
    enum Kind: Sendable {
        /// A MUST of the specifications.
        case required
        /// Reuse that the specifications allow and a good cache makes use of.
        case optimal
        /// A question with two right answers.
        case check
        /// Not counted, since the public suite skips it for browsers, but required of this cache.
        case extra
    }

    var id: String
    var kind: Kind
    var steps: [ConformanceStep]

    init(_ id: String, _ kind: Kind = .required, _ steps: ConformanceStep...) {
        self.id = id
        self.kind = kind
        self.steps = steps
    }
}

/// One request of a row, the origin's answer to it, and the expectations.
struct ConformanceStep: Sendable {
    var request = Request()
    var reply = Reply()
    var expected = Expectation()
    /// Three seconds pass after the request.
    var pausesAfter = false
    /// The cache is expected to refresh what it answered with, in the background.
    var refreshes = false

    struct Request: Sendable {
        var method = "GET"
        var fields: [ConformanceField] = []
        var body: String?
        /// Appended to the row's own path.
        var pathSuffix = ""
        /// Ask for end-to-end validation, as a reload in a browser does.
        var isReload = false
    }

    struct Reply: Sendable {
        var status: Int?
        var fields: [ConformanceField] = []
        /// Nil stands for the row's own token.
        var body: String?
        var interim: [OriginResponse.Interim] = []
        var disconnects = false
    }

    struct Expectation: Sendable {
        enum Source: Sendable {
            case cached
            case notCached
            /// The origin answers 304, and 999 if it was not asked in the right way.
            case etagValidated
            case lastModifiedValidated

            var isValidated: Bool { self == .etagValidated || self == .lastModifiedValidated }
        }

        enum Status: Sendable {
            /// The reply's, or 200.
            case asReplied
            case any
            case exactly(Int)
        }

        enum Body: Sendable {
            /// The reply's, or the row's token.
            case asReplied
            case any
            case exactly(String)
        }

        var source: Source?
        var status = Status.asReplied
        var body = Body.asReplied
        var fields: [ConformanceField] = []
        var presentFields: [String] = []
        var missingFields: [String] = []
        /// The integer in the field is greater.
        var greater: [String: Int] = [:]
        var requestFields: [ConformanceField] = []
        var requestMethod: String?
        /// The load may end in an error in place of a response.
        var allowsError = false
    }
}

/// A header field of a row. Dates are offsets in seconds from the origin's clock.
struct ConformanceField: Sendable, ExpressibleByStringLiteral {
    enum Value: Sendable {
        case text(String)
        case date(Int)
        case rfc850Date(Int)
        /// Relative to the URL that was asked for.
        case relativeURL(String)
    }

    var name: String
    var value: Value
    /// A reply's field that is checked must reach the client as it was sent.
    var isChecked = true

    init(_ name: String, _ value: Value, isChecked: Bool = true) {
        self.name = name
        self.value = value
        self.isChecked = isChecked
    }

    /// `"Name: value"`.
    init(stringLiteral literal: String) {
        let parts = literal.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        var value = parts.count > 1 ? String(parts[1]) : ""
        if value.hasPrefix(" ") { value.removeFirst() }
        self.init(String(parts[0]), .text(value))
    }

    static func date(_ name: String, _ offset: Int) -> Self { Self(name, .date(offset)) }

    /// A field that is sent but not compared with what the client gets.
    static func unchecked(_ name: String, _ value: String) -> Self { Self(name, .text(value), isChecked: false) }

    func text(now: Date, requestTarget: String) -> String {
        switch value {
        case .text(let text): text
        case .date(let offset): HTTPDateText.text(now + TimeInterval(offset))
        case .rfc850Date(let offset): HTTPDateText.rfc850(now + TimeInterval(offset))
        case .relativeURL(let path): path.isEmpty ? requestTarget : requestTarget + "/" + path
        }
    }
}

// MARK: - The words in which rows are written

extension ConformanceStep {
    static let get = ConformanceStep()

    static func send(_ method: String, body: String? = nil) -> Self {
        var step = Self()
        step.request.method = method
        step.request.body = body
        return step
    }

    /// The answer that most rows begin with.
    static func fresh(_ fields: ConformanceField...) -> Self {
        get.replies(["Cache-Control: max-age=100000", .date("Date", 0)] + fields).pausing
    }

    static func becomesStale(_ fields: ConformanceField...) -> Self {
        get.replies(["Cache-Control: max-age=2", .date("Date", 0), "Template-A: 1"] + fields).pausing
    }

    static let alreadyStale = get.replies(
        .date("Expires", -5_000), .date("Last-Modified", -100_000), .date("Date", 0)
    ).pausing

    private func with(_ change: (inout Self) -> Void) -> Self {
        var copy = self
        change(&copy)
        return copy
    }

    // The request

    func sends(_ fields: ConformanceField...) -> Self { with { $0.request.fields += fields } }
    func at(_ suffix: String) -> Self { with { $0.request.pathSuffix = suffix } }
    var reloading: Self { with { $0.request.isReload = true } }

    // The reply

    func replies(_ fields: ConformanceField...) -> Self { replies(fields) }
    func replies(_ fields: [ConformanceField]) -> Self { with { $0.reply.fields += fields } }
    func status(_ status: Int) -> Self { with { $0.reply.status = status } }
    func body(_ body: String?) -> Self { with { $0.reply.body = body } }
    func interim(_ status: Int, _ fields: OriginFields = [:]) -> Self {
        with { $0.reply.interim.append(.init(status: status, reason: "Interim", fields: fields)) }
    }
    var disconnects: Self { with { $0.reply.disconnects = true } }
    var pausing: Self { with { $0.pausesAfter = true } }
    var refreshing: Self { with { $0.refreshes = true } }

    // The expectations

    var cached: Self { with { $0.expected.source = .cached } }
    var notCached: Self { with { $0.expected.source = .notCached } }
    var etagValidated: Self { with { $0.expected.source = .etagValidated } }
    var lastModifiedValidated: Self { with { $0.expected.source = .lastModifiedValidated } }
    func seesStatus(_ status: Int) -> Self { with { $0.expected.status = .exactly(status) } }
    func seesBody(_ body: String) -> Self { with { $0.expected.body = .exactly(body) } }
    func sees(_ fields: ConformanceField...) -> Self { with { $0.expected.fields += fields } }
    func has(_ names: String...) -> Self { with { $0.expected.presentFields += names } }
    func misses(_ names: String...) -> Self { with { $0.expected.missingFields += names } }
    func sees(_ name: String, greaterThan limit: Int) -> Self { with { $0.expected.greater[name] = limit } }
    func originSees(_ fields: ConformanceField...) -> Self { with { $0.expected.requestFields += fields } }
    func originSees(method: String) -> Self { with { $0.expected.requestMethod = method } }
    var anyStatus: Self { with { $0.expected.status = .any } }
    var anyBody: Self { with { $0.expected.body = .any } }
    var errorAllowed: Self { with { $0.expected.allowsError = true } }
}
