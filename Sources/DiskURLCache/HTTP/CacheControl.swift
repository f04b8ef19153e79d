/// The directives of a `Cache-Control` field (RFC 9111 §5.2), parsed once.
package struct CacheControl: Sendable, Equatable {
    package enum Argument: Sendable, Equatable {
        case none
        case value(String)
        /// The text after the name breaks the grammar. A directive that restricts is obeyed all the same; one that
        /// allows something is invalid.
        case malformed
    }

    package struct Directive: Sendable, Equatable {
        /// In lower case.
        package var name: String
        var argument: Argument
    }

    /// A number of seconds that a response or a request states.
    package struct Seconds: Sendable, Equatable {
        var count: Int64
        package var isValid = true

        /// A value that cannot be read: it counts as 0 seconds (RFC 9111 §4.2.1, §5.3).
        static let invalid = Seconds(count: 0, isValid: false)

        /// Nil for a value that cannot be read: it allows nothing.
        var allowed: Int64? { isValid ? count : nil }
    }

    package let directives: [Directive]

    init(directives: [Directive]) { self.directives = directives }

    /// - Parameter value: the combined value of the field; nil when there is none.
    package init(_ value: String?) {
        guard let value else {
            directives = []
            return
        }
        directives = value.withBytes { bytes in
            var directives: [Directive] = []
            // Growing the list would cost more than reading most values.
            directives.reserveCapacity(4)
            FieldSyntax.forEachMember(of: bytes) { place in
                if let directive = Self.directive(bytes[place]) { directives.append(directive) }
            }
            return directives
        }
    }

    private static func directive(_ member: Slice<UnsafeBufferPointer<UInt8>>) -> Directive? {
        let end = member.firstIndex { !FieldSyntax.isTokenByte($0) } ?? member.endIndex
        guard end > member.startIndex else { return nil }
        let name = FieldSyntax.lowercased(token: member[..<end])
        guard end < member.endIndex else { return Directive(name: name, argument: .none) }
        guard member[end] == UInt8(ascii: "=") else { return Directive(name: name, argument: .malformed) }
        let rest = member[(end + 1)...]
        if !rest.isEmpty, rest.allSatisfy(FieldSyntax.isTokenByte) {
            return Directive(name: name, argument: .value(String(decoding: rest, as: UTF8.self)))
        }
        // "a recipient ought to accept both forms" (RFC 9111 §5.2): token and quoted string.
        return Directive(name: name, argument: FieldSyntax.unquoting(rest).map(Argument.value) ?? .malformed)
    }

    func contains(_ name: String) -> Bool {
        directives.contains { $0.name == name }
    }

    /// Whether there is a directive that cannot be read.
    var hasMalformed: Bool { directives.contains { $0.argument == .malformed } }

    /// Whether `no-cache` or `private` names fields.
    var namesFields: Bool { ["no-cache", "private"].contains { fieldNames($0)?.isEmpty == false } }

    /// The smallest of several values; nil without the directive. RFC 9111 §4.2.1 lets a cache take the first value or
    /// treat the response as stale; the smallest one never keeps a response fresh for longer than the first would.
    func seconds(_ name: String) -> Seconds? {
        var least: Seconds?
        for directive in directives where directive.name == name { least = directive.seconds(atMost: least) }
        return least
    }

    /// The value if it is valid, for directives that allow something.
    func allowance(_ name: String) -> Int64? { seconds(name)?.allowed }

    /// The field names that the qualified forms of `name` list, in lower case; nil when the unqualified form occurs.
    /// Empty when the directive does not occur.
    func fieldNames(_ name: String) -> [String]? {
        var names: [String]? = []
        for directive in directives where directive.name == name { directive.addFieldNames(to: &names) }
        return names
    }
}

extension CacheControl.Directive {
    /// The smaller of this value and `other`, which has the same name.
    func seconds(atMost other: CacheControl.Seconds?) -> CacheControl.Seconds {
        guard other?.isValid != false, case .value(let argument) = argument,
            let count = FieldSyntax.deltaSeconds(argument)
        else { return .invalid }
        return CacheControl.Seconds(count: min(count, other?.count ?? count))
    }

    /// Adds the field names that the directive lists, in lower case. If it lists none, it concerns the whole response,
    /// and the result is nil.
    func addFieldNames(to names: inout [String]?) {
        var listed: [Substring] = []
        if case .value(let argument) = argument { listed = FieldSyntax.members(of: argument) }
        guard !listed.isEmpty, listed.allSatisfy({ FieldSyntax.isToken($0) }) else {
            names = nil
            return
        }
        // In place: the directive may be repeated any number of times.
        names?.append(contentsOf: listed.map { $0.lowercased() })
    }
}

/// The directives of a response about storage and reuse (RFC 9111 §5.2.2). `private`, `s-maxage` and `proxy-revalidate`
/// concern shared caches only.
package struct ResponseDirectives: Sendable, Equatable {
    var noStore = false
    var mustUnderstand = false
    /// `no-cache` without field names: never reused without validation.
    package var noCache = false
    /// The fields that `no-cache="…"` withholds from reuse, in lower case.
    var noCacheFields: [String] = []
    var mustRevalidate = false
    var isPublic = false
    /// `private` without field names.
    var isPrivate = false
    var proxyRevalidate = false
    /// `s-maxage`
    var sharedMaxAge: CacheControl.Seconds?
    var isImmutable = false
    var maxAge: CacheControl.Seconds?
    var staleWhileRevalidate: Int64?
    var staleIfError: Int64?
    /// A directive cannot be read. It may have been the lifetime, as in `public; max-age=30`: none is guessed then.
    package var hasMalformed = false
    /// The name of the targeted field from which the directives were read; nil if they are those of `Cache-Control`.
    package var targetedField: String?

    /// - Parameters:
    ///   - known: the directives of `Cache-Control`, when the caller has parsed them.
    ///   - targeted: names of fields to look at before `Cache-Control` (RFC 9213).
    init(_ fields: HeaderFields, control known: CacheControl? = nil, targeted: [String] = []) {
        let field = targeted.isEmpty ? nil : TargetedField(in: fields, listed: targeted)
        targetedField = field?.name
        let control = field?.control ?? known ?? CacheControl(fields["Cache-Control"])
        read(control)
        // A targeted field that withholds a field withholds the whole response.
        if field != nil {
            noCache = control.contains("no-cache")
            noCacheFields = []
            isPrivate = control.contains("private")
        }
        // RFC 9111 §5.4: `Pragma` in a response was never specified. Without `Cache-Control`, its old meaning is the
        // cautious reading.
        if field == nil, control.directives.isEmpty, let pragma = fields["Pragma"] {
            noCache = CacheControl(pragma).contains("no-cache")
        }
    }

    /// Looks at each directive once.
    private mutating func read(_ control: CacheControl) {
        var whileRevalidating: CacheControl.Seconds?
        var ifError: CacheControl.Seconds?
        var withheld: [String]? = []
        var ofOneUser: [String]? = []
        for directive in control.directives {
            switch directive.name {
            case "max-age": maxAge = directive.seconds(atMost: maxAge)
            case "public": isPublic = true
            case "no-cache": directive.addFieldNames(to: &withheld)
            case "no-store": noStore = true
            case "private": directive.addFieldNames(to: &ofOneUser)
            case "must-revalidate": mustRevalidate = true
            case "immutable": isImmutable = true
            case "s-maxage": sharedMaxAge = directive.seconds(atMost: sharedMaxAge)
            case "stale-while-revalidate": whileRevalidating = directive.seconds(atMost: whileRevalidating)
            case "stale-if-error": ifError = directive.seconds(atMost: ifError)
            case "proxy-revalidate": proxyRevalidate = true
            case "must-understand": mustUnderstand = true
            default: break
            }
        }
        noCache = withheld == nil
        noCacheFields = withheld ?? []
        isPrivate = ofOneUser == nil
        staleWhileRevalidate = whileRevalidating?.allowed
        staleIfError = ifError?.allowed
        hasMalformed = control.hasMalformed
    }
}

/// The directives of a request about reuse (RFC 9111 §5.2.1).
struct RequestDirectives: Sendable, Equatable {
    var noStore = false
    var noCache = false
    var onlyIfCached = false
    var maxAge: Int64?
    var minFresh: Int64?
    /// `Int64.max` for a `max-stale` without a number, which accepts any staleness.
    var maxStale: Int64?
    /// RFC 5861 §4 lets a request carry the directive, too.
    var staleIfError: Int64?

    /// Of a request that says nothing.
    init() {}

    init(_ fields: HeaderFields) {
        let control = CacheControl(fields["Cache-Control"])
        noStore = control.contains("no-store")
        noCache = control.contains("no-cache")
        onlyIfCached = control.contains("only-if-cached")
        maxAge = control.seconds("max-age")?.count
        minFresh = control.allowance("min-fresh")
        let isUnlimited = control.directives.contains(.init(name: "max-stale", argument: .none))
        maxStale = control.allowance("max-stale") ?? (isUnlimited ? .max : nil)
        staleIfError = control.allowance("stale-if-error")
        // RFC 9111 §5.4: `Pragma: no-cache` counts when the request has no Cache-Control.
        if control.directives.isEmpty, let pragma = fields["Pragma"] {
            noCache = CacheControl(pragma).contains("no-cache")
        }
    }
}
