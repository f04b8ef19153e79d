import Foundation

/// A property-list value: the part of `userInfo` that can be written to disk.
indirect enum PropertyValue: Sendable, Hashable {
    case string(String)
    case integer(Int64)
    case real(Double)
    case boolean(Bool)
    case date(Date)
    case data(Data)
    case array([PropertyValue])
    case dictionary([String: PropertyValue])

    /// The memory that it takes, in bytes.
    var estimatedSize: Int {
        let own = MemoryLayout<PropertyValue>.size + 48
        switch self {
        case .string(let text): return own + text.utf8.count
        case .data(let data): return own + data.count
        case .array(let values): return values.reduce(own) { $0 + $1.estimatedSize }
        case .dictionary(let values): return values.reduce(own) { $0 + $1.key.utf8.count + $1.value.estimatedSize }
        case .integer, .real, .boolean, .date: return own
        }
    }

    /// Nil if the value, or anything inside it, is not of a property-list type.
    init?(_ value: Any) {
        switch value {
        case let value as String: self = .string(value)
        case let value as Data: self = .data(value)
        case let value as Date: self = .date(value)
        case let value as NSNumber:
            guard let number = PropertyValue(number: value, isByte: type(of: value as Any) == Int8.self) else {
                return nil
            }
            self = number
        case let values as [Any]:
            let converted = values.compactMap { PropertyValue($0) }
            guard converted.count == values.count else { return nil }
            self = .array(converted)
        case let values as [AnyHashable: Any]:
            var converted: [String: PropertyValue] = [:]
            for (key, value) in values {
                guard let key = key.base as? String, let value = PropertyValue(value) else { return nil }
                converted[key] = value
            }
            self = .dictionary(converted)
        default: return nil
        }
    }

    /// Every Swift number bridges to `NSNumber`, which remembers its C type: "c" and "B" are Booleans.
    private init?(number: NSNumber, isByte: Bool) {
        switch String(cString: number.objCType) {
        case "c" where !isByte, "B": self = .boolean(number.boolValue)
        case "d", "f": self = .real(number.doubleValue)
        case "Q" where number.uint64Value > UInt64(Int64.max): return nil
        default: self = .integer(number.int64Value)
        }
    }

    var foundationValue: Any {
        switch self {
        case .string(let value): value
        case .integer(let value): Int(exactly: value) as Any? ?? NSNumber(value: value)
        case .real(let value): value
        case .boolean(let value): value
        case .date(let value): value
        case .data(let value): value
        case .array(let values): values.map(\.foundationValue)
        case .dictionary(let values): values.mapValues(\.foundationValue)
        }
    }
}
