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

    private enum Storage: Sendable {
        case list([Field])
        /// As Foundation keeps them: in an arbitrary order, which stays the same as long as no field is changed.
        case dictionary([String: String])
        case later(LaterFields)
    }

    private var storage: Storage

    package private(set) var fields: [Field] {
        get {
            switch storage {
            case .list(let fields): fields
            case .dictionary(let fields): fields.map { Field(name: $0.key, value: $0.value) }
            case .later(let later): later.fields
            }
        }
        set { storage = .list(newValue) }
    }

    package init(_ fields: [Field] = []) {
        storage = .list(fields)
    }

    /// Shares the dictionary.
    init(dictionary: [String: String]) {
        storage = .dictionary(dictionary)
    }

    /// Fields that are made when they are first read. Two threads that read them at once may both call `make`.
    /// - Parameter estimatedSize: what they will take in memory, in bytes.
    init(estimatedSize: Int, later make: @escaping @Sendable () -> [Field]) {
        storage = .later(LaterFields(estimatedSize: estimatedSize, make))
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
        var result: String?
        func take(_ value: String) { result = result.map { $0 + ", " + value } ?? value }
        switch storage {
        case .dictionary(let dictionary):
            for (field, value) in dictionary where field.equalsIgnoringASCIICase(name) { take(value) }
        case .list, .later:
            // By their places: nearly all fields have another name, and need not be copied.
            let fields = fields
            let length = name.utf8.count
            for place in fields.indices where fields[place].name.utf8.count == length {
                if fields[place].name.equalsIgnoringASCIICase(name) { take(fields[place].value) }
            }
        }
        return result
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
            for field in fields { body(field.name, field.value) }
        }
    }

    /// Each name once, a repeated field in its combined form (RFC 9110 §5.3).
    var dictionary: [String: String] {
        if case .dictionary(let dictionary) = storage { return dictionary }
        var dictionary: [String: String] = [:]
        dictionary.reserveCapacity(count)
        // Of names that differ only in case Foundation would keep one value, so all values are joined under the first
        // spelling.
        var spellings: [String: String] = [:]
        spellings.reserveCapacity(count)
        forEachField { name, value in
            let lowercased = name.lowercased()
            if let spelling = spellings[lowercased] {
                dictionary[spelling]? += ", " + value
            } else {
                spellings[lowercased] = name
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
        remove(name)
        append(name, value)
    }
}

/// Fields that are made when they are first read. All copies of the `HeaderFields` share them.
private final class LaterFields: @unchecked Sendable {
    // @unchecked: `state` is reached only while this object's `SharedLock` is held, and the rest is constant.
    private enum State {
        case later(@Sendable () -> [HeaderFields.Field])
        /// The closure is released then, and with it the memory that it holds.
        case made([HeaderFields.Field])
    }

    let estimatedSize: Int
    @exclusivity(unchecked) private var state: State

    init(estimatedSize: Int, _ make: @escaping @Sendable () -> [HeaderFields.Field]) {
        self.estimatedSize = estimatedSize
        state = .later(make)
    }

    var fields: [HeaderFields.Field] {
        switch SharedLock.withLock(of: self, { state }) {
        case .made(let fields): return fields
        case .later(let make):
            let new = make()
            return SharedLock.withLock(of: self) {
                // If a second thread was faster, its fields count.
                if case .made(let fields) = state { return fields }
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

extension HeaderFields {
    /// The names alone: a value may be a credential, under any name.
    package var printedNames: String { fields.map(\.name).joined(separator: ", ") }
}
