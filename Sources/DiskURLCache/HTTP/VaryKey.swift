/// The request fields by which a stored response was selected (RFC 9111 §4.1).
///
/// Values are kept as digests only: they may be cookies or credentials, and a record must not hold those.
package struct VaryKey: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        /// In lower case.
        package var name: String
        /// Digest of the normalised value; nil when the request did not have the field.
        var value: KeyDigest?
        /// Mixed into the digest of credentials.
        var salt: CredentialSalt?
    }

    /// Sorted by name. Empty when the response has no `Vary`.
    package var fields: [Field]
    /// `Vary: *`: never matches.
    package var matchesNothing: Bool

    static let none = VaryKey(fields: [], matchesNothing: false)
}

extension VaryKey {
    /// The key of a response to a request.
    init(response: HeaderFields, request: RequestFacts) {
        let names = Self.names(in: response["Vary"])
        matchesNothing = names == nil
        fields = (names ?? []).map { name in
            let isSalted = Self.isCredential(name) && request.fields[name] != nil
            // The bytes are read now: later, a record is written under a lock under which the salt's file must not be
            // read.
            let salt = isSalted ? request.salt.map { CredentialSalt($0.bytes) } : nil
            return Field(name: name, value: Self.digest(of: name, in: request.fields, salt), salt: salt)
        }
    }

    /// The field names that a `Vary` lists, in lower case and sorted; nil when no request matches it.
    static func names(in vary: String?) -> [String]? {
        guard let vary else { return [] }
        var names: [String] = []
        let areFieldNames = vary.withBytes { bytes in
            var areFieldNames = true
            FieldSyntax.forEachMember(of: bytes) { place in
                let member = bytes[place]
                // A member that is no field name cannot be compared, so it must not match either.
                let isAsterisk = member.count == 1 && member.first == UInt8(ascii: "*")
                areFieldNames = areFieldNames && !isAsterisk && member.allSatisfy(FieldSyntax.isTokenByte)
                if areFieldNames { names.append(FieldSyntax.lowercased(token: member)) }
            }
            return areFieldNames
        }
        guard areFieldNames else { return nil }
        return names.count > 1 ? Set(names).sorted() : names
    }

    /// Whether a request with these fields may be answered by the response this key was made for.
    func matches(_ request: HeaderFields) -> Bool {
        if matchesNothing { return false }
        return fields.allSatisfy { field in
            field.value == Self.digest(of: field.name, in: request, field.salt)
        }
    }

    /// The same, for one of several responses that are compared with one request.
    func matches(_ request: inout FieldDigests) -> Bool {
        if matchesNothing { return false }
        for field in fields where field.value != request.digest(of: field.name, field.salt) { return false }
        return true
    }

    /// Whether one request may match both: they differ in no field that both name. Digests with different salts cannot
    /// be compared. An origin chooses how many names there are, so both lists, which are sorted, are walked together.
    func overlaps(_ other: VaryKey) -> Bool {
        var (place, otherPlace) = (0, 0)
        while place < fields.count, otherPlace < other.fields.count {
            let (field, otherField) = (fields[place], other.fields[otherPlace])
            let isSame = field.name == otherField.name
            if isSame, field.salt == otherField.salt, field.value != otherField.value { return false }
            if isSame || field.name < otherField.name { place += 1 }
            if isSame || otherField.name < field.name { otherPlace += 1 }
        }
        return true
    }

    /// Whether the value of this field makes a difference.
    /// - Parameter name: in lower case.
    func names(_ name: String) -> Bool { fields.contains { $0.name == name } }

    /// The fields in which a request differs from the one that was answered.
    package func differences(from request: HeaderFields) -> [String] {
        let different = fields.filter { field in
            field.value != Self.digest(of: field.name, in: request, field.salt)
        }
        return different.map(\.name)
    }

    /// The request's values of these fields; nil for a field that the request does not have.
    func values(in request: HeaderFields) -> [String?] { fields.map { request[$0.name] } }

    /// Whether a request has these values.
    func hasValues(_ values: [String?], in request: HeaderFields) -> Bool {
        for (field, value) in zip(fields, values) {
            switch (request[field.name], value) {
            case (nil, nil): continue
            case (let asked?, let value?) where asked.hasSameBytes(as: value): continue
            default: return false
            }
        }
        return true
    }

    /// - Parameter name: of a header field, in lower case.
    static func isCredential(_ name: String) -> Bool {
        switch name {
        case "authorization", "cookie", "proxy-authorization": true
        default: false
        }
    }

    private static func digest(of name: String, in request: HeaderFields, _ salt: CredentialSalt?) -> KeyDigest? {
        request[name].map { digest(of: name, $0, salt) }
    }

    fileprivate static func digest(of name: String, _ value: String, _ salt: CredentialSalt?) -> KeyDigest {
        if let salt { return salt.digest(of: "\(name):\(normalized(value, of: name))") }
        if let known = negotiatedDigest(of: name, value) { return known }
        let digest = SHA256Digest.digest(of: "\(name):\(normalized(value, of: name))")
        guard name.hasPrefix("accept") else { return digest }
        negotiated.withLock { known in
            if known.count >= 16 { known.removeFirst() }
            known.append(Negotiated(name: name, value: value, digest: digest))
        }
        return digest
    }

    fileprivate static func negotiatedDigest(of name: String, _ value: String) -> KeyDigest? {
        negotiated.withLock { known in
            // By places, so that no text is copied.
            for place in known.indices where known[place].name == name && known[place].value.hasSameBytes(as: value) {
                return known[place].digest
            }
            return nil
        }
    }

    /// The last values of the `Accept-*` fields, with their digests: a process sends the same few values all the time,
    /// and a digest costs more than the rest of a hit. Only these fields are kept here, since any other may be a cookie
    /// or a credential.
    private static let negotiated = Mutex<[Negotiated]>([], isContended: true)

    private struct Negotiated {
        let name: String
        let value: String
        let digest: KeyDigest
    }

    /// A form that is equal for values of the same meaning: whitespace around list members never matters, in the fields
    /// by which a client negotiates case does not, and the order of codings and charsets does not either. Of two
    /// languages with the same weight, servers prefer the one that is named first (RFC 9110 §12.5.4). A weight stays
    /// with its member, so that "gzip, br;q=0.5" and "br, gzip;q=0.5" remain different.
    static func normalized(_ value: String, of name: String) -> String {
        let members = FieldSyntax.members(of: value)
        func withoutCaseAndSpaces() -> [String] {
            members.map { member in
                member.lowercased().filter { $0 != " " && $0 != "\t" }
            }
        }
        switch name {
        case "accept-language": return withoutCaseAndSpaces().joined(separator: ",")
        case "accept-encoding", "accept-charset": return withoutCaseAndSpaces().sorted().joined(separator: ",")
        default:
            let joined = members.joined(separator: ",")
            // In a field whose syntax is not known, an empty member may mean something: columns, as in "1,,2".
            func commas(_ text: String) -> Int { text.utf8.count { $0 == UInt8(ascii: ",") } }
            return commas(joined) == commas(value) ? joined : value
        }
    }
}

/// The digests of one request's field values, each made once, however many variants of a response are compared with
/// the request.
struct FieldDigests {
    let fields: HeaderFields
    /// Those that are not kept from request to request.
    private(set) var made: [VaryKey.Field] = []

    init(of fields: HeaderFields) { self.fields = fields }

    /// - Parameter name: in lower case.
    mutating func digest(of name: String, _ salt: CredentialSalt?) -> KeyDigest? {
        // A server may name any number of fields, of which a request has few.
        guard let value = fields[name] else { return nil }
        if salt == nil, let known = VaryKey.negotiatedDigest(of: name, value) { return known }
        if let known = made.first(where: { $0.name == name && $0.salt == salt }) { return known.value }
        let digest = VaryKey.digest(of: name, value, salt)
        made.append(VaryKey.Field(name: name, value: digest, salt: salt))
        return digest
    }
}
