import Foundation

/// Which header fields of a response are stored (RFC 9111 §3.1).
package enum StorableFields {
    /// Fields that belong to one connection, to a proxy, or to one user's session.
    ///
    /// `Set-Cookie` is here for safety: a session that was set once must not be set again by every reuse.
    /// `Clear-Site-Data`, too: it would delete each time what the client has stored since.
    static let excluded = FieldNames([
        "clear-site-data", "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info",
        "proxy-authorization", "proxy-connection", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade",
    ])

    /// Fields for a single user or exchange (RFC 9110 §11.6.3), which a shared cache must not deliver to others.
    static let excludedWhenShared = FieldNames(["authentication-info", "set-cookie2"])

    /// Those of `excluded` for the client itself.
    static let forClient = FieldNames(["clear-site-data", "set-cookie"])

    /// Those that decide about reuse: no other field withholds them.
    private static let deciding = FieldNames(["cache-control", "vary", "date", "age", "expires"])

    /// The result of looking at each field of a response once.
    struct Look {
        /// The fields that are stored.
        fileprivate(set) var kept: HeaderFields
        /// See `areWellFormed`.
        fileprivate(set) var areWellFormed = true
        fileprivate(set) var hasDate = false
    }

    /// Looks at each field once.
    ///
    /// Not stored are the fields above, those that `Connection` names, and those that `no-cache="…"` withholds from
    /// reuse: they come again with each validation. In a shared cache also those that `private="…"` names (RFC 9111
    /// §5.2.2.7). The fields that decide about reuse are stored, even if `Connection` or `no-cache` names them.
    /// - Parameters:
    ///   - control: the directives of `Cache-Control`.
    ///   - checksForm: false if nobody asks whether the fields are well-formed.
    static func look(
        at fields: HeaderFields, control: CacheControl, isShared: Bool, checksForm: Bool = true
    ) -> Look {
        var look = Look(kept: fields)
        var isAnyExcluded = false
        var named = named(by: control, isShared: isShared)
        fields.forEachField { name, value in
            look.areWellFormed = look.areWellFormed && (!checksForm || isWellFormed(name, value))
            look.hasDate = look.hasDate || name.equalsIgnoringASCIICase("date")
            guard isExcluded(name, isShared: isShared) else { return }
            isAnyExcluded = true
            if name.equalsIgnoringASCIICase("connection") {
                for member in FieldSyntax.members(of: value) { named.insert(String(member)) }
            }
            // RFC 9112 §6.3: it overrides the length, and is not stored itself.
            if name.equalsIgnoringASCIICase("transfer-encoding") { named.insert("content-length") }
        }
        // Then all fields are stored as they are, without a copy.
        guard isAnyExcluded || !named.isEmpty else { return look }
        func isWithheld(_ name: String) -> Bool { named.contains(name) && !deciding.contains(name) }
        look.kept = HeaderFields(
            fields.fields.filter { !isExcluded($0.name, isShared: isShared) && !isWithheld($0.name) })
        return look
    }

    /// The fields that are stored, for a response that is looked at for nothing else: see `look(at:control:isShared:)`.
    package static func filtered(_ fields: HeaderFields, isShared: Bool = false) -> HeaderFields {
        reduced(fields, control: CacheControl(fields["Cache-Control"]), isShared: isShared) ?? fields
    }

    /// The same; nil if all fields are stored, as of most responses.
    static func reduced(_ fields: HeaderFields, control: CacheControl, isShared: Bool) -> HeaderFields? {
        let isAnyExcluded = fields.haveOne(of: excluded) || isShared && fields.haveOne(of: excludedWhenShared)
        guard isAnyExcluded || !named(by: control, isShared: isShared).isEmpty else { return nil }
        return look(at: fields, control: control, isShared: isShared, checksForm: false).kept
    }

    /// The fields that `no-cache="…"`, and in a shared cache `private="…"`, withhold.
    private static func named(by control: CacheControl, isShared: Bool) -> FieldNames {
        var named = FieldNames(control.fieldNames("no-cache") ?? [])
        if isShared { for name in control.fieldNames("private") ?? [] { named.insert(name) } }
        return named
    }

    private static func isExcluded(_ name: String, isShared: Bool) -> Bool {
        excluded.contains(name) || isShared && excludedWhenShared.contains(name)
    }

    /// Whether every field can be written and read again unchanged (RFC 9110 §5.1, §5.5). A control character could
    /// hide a directive from some readers.
    static func areWellFormed(_ fields: HeaderFields) -> Bool {
        fields.fields.allSatisfy { isWellFormed($0.name, $0.value) }
    }

    private static func isWellFormed(_ name: String, _ value: String) -> Bool {
        let isToken = name.withBytes { bytes in
            // Decided by words for nearly all names.
            if UnsafeRawBufferPointer(bytes).hasOnlyLettersAndHyphens { return true }
            return !bytes.isEmpty && bytes.allSatisfy(FieldSyntax.isTokenByte)
        }
        guard isToken else { return false }
        let delete: UInt8 = 0x7F
        return value.withBytes { bytes in
            // Decided by words for nearly all values, too.
            if !UnsafeRawBufferPointer(bytes).mayHaveByte(below: 0x20, or: delete) { return true }
            return bytes.allSatisfy { $0 >= 0x20 && $0 != delete || $0 == 0x09 }
        }
    }
}
