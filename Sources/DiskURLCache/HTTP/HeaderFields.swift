import Foundation

/// The header fields of a message, with case-insensitive names (RFC 9110 §5.1), in the order of the message if that is
/// known.
///
/// A name may occur several times; `self[name]` gives the combined value as RFC 9110 §5.3 defines it.
package struct HeaderFields: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }

        package static func == (left: Field, right: Field) -> Bool {
            left.name.hasSameBytes(as: right.name) && left.value.hasSameBytes(as: right.value)
        }
    }

    /// The fields in their order.
    fileprivate struct List: Sendable {
        let fields: [Field]
        let lengths: NameLengths

        init(_ fields: [Field]) {
            self.fields = fields
            var lengths = NameLengths()
            fields.withUnsafeBufferPointer { fields in
                for place in fields.indices { lengths.insert(length: fields[place].name.utf8.count) }
            }
            self.lengths = lengths
        }

        /// All values of `name`, joined by ", ".
        subscript(name: String) -> String? {
            guard lengths.mayContain(name) else { return nil }
            let length = name.utf8.count
            return fields.withUnsafeBufferPointer { fields in
                var combined: String?
                // By places, since nearly all fields have another name, and need not be copied.
                for place in fields.indices
                where fields[place].name.utf8.count == length && fields[place].name.hasSameLetters(as: name) {
                    guard combined != nil else {
                        combined = fields[place].value
                        continue
                    }
                    // In place, since a server chooses how many there are.
                    combined?.append(", ")
                    combined?.append(fields[place].value)
                }
                return combined
            }
        }
    }

    private enum Storage: Sendable {
        case list(List)
        /// As Foundation keeps them: in an arbitrary order, which stays the same as long as no field is changed.
        case dictionary([String: String])
        case later(LaterFields)
    }

    private var storage: Storage

    package private(set) var fields: [Field] {
        get {
            switch storage {
            case .list(let list): list.fields
            case .dictionary(let fields): fields.map { Field(name: $0.key, value: $0.value) }
            case .later(let later): later.list.fields
            }
        }
        set { storage = .list(List(newValue)) }
    }

    package init(_ fields: [Field] = []) {
        storage = .list(List(fields))
    }

    /// Shares the dictionary.
    package init(dictionary: [String: String]) {
        storage = .dictionary(dictionary)
    }

    /// Fields that are made of bytes when they are first read. Two threads that read them at once may both call `make`.
    /// - Parameter estimatedSize: what they will take in memory, in bytes.
    init(estimatedSize: Int, later bytes: [UInt8], _ make: @escaping @Sendable (UnsafeRawBufferPointer) -> [Field]) {
        storage = .later(LaterFields(estimatedSize: estimatedSize, bytes, make))
    }

    /// An estimate of the memory that the fields take, in bytes.
    var estimatedSize: Int {
        if case .later(let later) = storage { return later.estimatedSize }
        var size = 0
        forEachField { name, value in size += name.utf8.count + value.utf8.count + Self.fieldOverhead }
        return size
    }

    /// Two string headers, and a little.
    static let fieldOverhead = 40

    /// Compares the fields without regard to their order and to the case of their names: Foundation gives them in an
    /// order that means nothing.
    package static func == (left: HeaderFields, right: HeaderFields) -> Bool {
        left.count == right.count && left.comparable == right.comparable
    }

    private var comparable: [Field] {
        fields.map { Field(name: $0.name.lowercased(), value: $0.value) }
            .sorted { ($0.name, $0.value) < ($1.name, $1.value) }
    }

    /// The combined value: all values of `name` joined by ", "; nil when the field is absent.
    package subscript(name: String) -> String? {
        // Most names that a load asks for are absent, and this says so without a copy of the list.
        if case .list(let list) = storage, !list.lengths.mayContain(name) { return nil }
        switch storage {
        case .list(let list): return list[name]
        case .later(let later): return later.list[name]
        case .dictionary(let dictionary):
            var value: String?
            for (field, other) in dictionary where field.equalsIgnoringASCIICase(name) {
                value = value.map { $0 + ", " + other } ?? other
            }
            return value
        }
    }

    /// The value of a field that a message has once, such as `Location` (RFC 9110 §5.5). Copies of one value count
    /// once. Nil also for values that differ: whichever were taken, another recipient may take the other one.
    ///
    /// `Age`, `Content-Length` and `Date` are read otherwise, since an RFC says what several of them mean.
    package func single(_ name: String) -> String? {
        guard let joined = self[name] else { return nil }
        guard joined.contains(byte: UInt8(ascii: ",")) else { return joined }
        var values: [String] = []
        forEachField { if $0.equalsIgnoringASCIICase(name) { values.append($1) } }
        guard values.allSatisfy({ $0.hasSameBytes(as: values[0]) }) else { return nil }
        // Foundation, and some proxies, join them before they get here.
        return Self.withoutCopies(values[0])
    }

    /// One of the equal values that a text joins by ", "; the text itself if it does not.
    private static func withoutCopies(_ text: String) -> String {
        let bytes = Array(text.utf8)
        for count in [4, 3, 2] where (bytes.count + 2).isMultiple(of: count) {
            let one = Array(bytes.prefix(max(0, (bytes.count + 2) / count - 2)))
            if !one.isEmpty, Array(repeating: one, count: count).joined(separator: ", ".utf8).elementsEqual(bytes) {
                return String(decoding: one, as: UTF8.self)
            }
        }
        return text
    }

    var isEmpty: Bool { count == 0 }

    var count: Int {
        if case .dictionary(let dictionary) = storage { dictionary.count } else { fields.count }
    }

    /// Calls `body` with the name and the value of each field, in the order of `fields`, without making an array.
    @inline(__always)
    func forEachField(_ body: (_ name: String, _ value: String) -> Void) {
        if case .dictionary(let dictionary) = storage {
            for (name, value) in dictionary { body(name, value) }
        } else {
            fields.withUnsafeBufferPointer { fields in
                // By places, so that no field is copied.
                for place in fields.indices { body(fields[place].name, fields[place].value) }
            }
        }
    }

    /// Whether one of the fields has a name of the list.
    func haveOne(of names: FieldNames) -> Bool {
        guard case .list(let list) = storage else { return fields.contains { names.contains($0.name) } }
        guard list.lengths.haveOne(of: names.lengths) else { return false }
        return list.fields.withUnsafeBufferPointer { fields in
            // By places, so that no field is copied.
            for place in fields.indices where names.contains(fields[place].name) { return true }
            return false
        }
    }

    /// Each name once, a repeated field in its combined form (RFC 9110 §5.3).
    package var dictionary: [String: String] {
        if case .dictionary(let dictionary) = storage { return dictionary }
        var dictionary: [String: String] = [:]
        dictionary.reserveCapacity(count)
        // Of names that differ only in case Foundation would keep one value, so all values are joined under the first
        // spelling.
        var spellings: [FieldName: String] = [:]
        spellings.reserveCapacity(count)
        forEachField { name, value in
            if let spelling = spellings[FieldName(name)] {
                dictionary[spelling]? += ", " + value
            } else {
                spellings[FieldName(name)] = name
                dictionary[name] = value
            }
        }
        return dictionary
    }

    mutating func append(_ name: String, _ value: String) {
        fields.append(Field(name: name, value: value))
    }

    mutating func remove(_ name: String) {
        fields.removeAll { $0.name.equalsIgnoringASCIICase(name) }
    }

    /// Replaces all values of `name` with this one.
    mutating func set(_ name: String, _ value: String) {
        var all = fields
        all.removeAll { $0.name.equalsIgnoringASCIICase(name) }
        all.append(Field(name: name, value: value))
        fields = all
    }
}

/// Fields that are made when they are first read. All copies of the `HeaderFields` share them.
private final class LaterFields: @unchecked Sendable {
    // @unchecked: `state` is reached only while this object's `SharedLock` is held, and the rest is constant.
    private enum State {
        case later([UInt8])
        /// The bytes are released then.
        case made(HeaderFields.List)
    }

    let estimatedSize: Int
    private let make: @Sendable (UnsafeRawBufferPointer) -> [HeaderFields.Field]
    @exclusivity(unchecked) private var state: State

    init(
        estimatedSize: Int, _ bytes: [UInt8],
        _ make: @escaping @Sendable (UnsafeRawBufferPointer) -> [HeaderFields.Field]
    ) {
        self.estimatedSize = estimatedSize
        self.make = make
        state = .later(bytes)
    }

    var list: HeaderFields.List {
        switch SharedLock.withLock(of: self, { state }) {
        case .made(let list): return list
        case .later(let bytes):
            let new = HeaderFields.List(bytes.withUnsafeBytes(make))
            return SharedLock.withLock(of: self) {
                // If a second thread was faster, its fields count.
                if case .made(let list) = state { return list }
                state = .made(new)
                return new
            }
        }
    }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Field(name: $0.0, value: $0.1) })
    }
}

/// The lengths of some field names: most names have a length that none of these has.
struct NameLengths: Sendable {
    /// A bit for each length, in bytes, up to 63, which stands for all from there on.
    private var bits: UInt64 = 0

    init(_ names: [String] = []) {
        for name in names { insert(name) }
    }

    @inline(__always)
    mutating func insert(_ name: String) { insert(length: name.utf8.count) }

    @inline(__always)
    mutating func insert(length: Int) { bits |= 1 << UInt64(min(length, 63)) }

    /// Whether a length is in both.
    func haveOne(of other: NameLengths) -> Bool { bits & other.bits != 0 }

    /// False if the name is surely none of them.
    @inline(__always)
    func mayContain(_ name: String) -> Bool { bits & 1 << UInt64(min(name.utf8.count, 63)) != 0 }
}

/// The names of some header fields, to ask which fields are among them. A few names are compared one by one, which is
/// quicker than to hash them; a server may name any number.
struct FieldNames: Sendable {
    private var few: [String] = []
    private var more: Set<FieldName> = []
    fileprivate private(set) var lengths = NameLengths()
    private static let fewCount = 16

    init(_ names: [String] = []) {
        for name in names { insert(name) }
    }

    var isEmpty: Bool { few.isEmpty }

    mutating func insert(_ name: String) {
        lengths.insert(name)
        if few.count < Self.fewCount { few.append(name) } else { more.insert(FieldName(name)) }
    }

    func contains(_ name: String) -> Bool {
        guard lengths.mayContain(name) else { return false }
        let length = name.utf8.count
        // By places, since nearly all names are different, and need not be copied.
        for place in few.indices where few[place].utf8.count == length && few[place].hasSameLetters(as: name) {
            return true
        }
        return !more.isEmpty && more.contains(FieldName(name))
    }
}

/// A field name in a set: compared without regard to ASCII case (RFC 9110 §5.1).
struct FieldName: Hashable, Sendable, ExpressibleByStringLiteral {
    let text: String

    init(_ text: String) { self.text = text }
    init(stringLiteral text: String) { self.text = text }

    static func == (left: FieldName, right: FieldName) -> Bool { left.text.equalsIgnoringASCIICase(right.text) }

    func hash(into hasher: inout Hasher) { hasher.combine(TextHash.hash(ignoringCaseOf: text)) }
}

extension HeaderFields {
    /// Whether the body has a content coding (RFC 9110 §8.4). `identity` is none.
    var nameCoding: Bool {
        guard let codings = self["Content-Encoding"] else { return false }
        return FieldSyntax.members(of: codings).contains { !String($0).equalsIgnoringASCIICase("identity") }
    }

    /// The names alone: a value may be a credential, under any name.
    package var printedNames: String { fields.map(\.name).joined(separator: ", ") }
}
