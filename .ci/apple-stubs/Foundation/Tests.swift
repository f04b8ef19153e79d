// Module Foundation, further: what the tests use and the library does not.
//
// Facts: Apple's documentation and the interface dumps that apple-check names. Simplified, so that less is proven:
// FileManager, String and Data have these as methods of Foundation's own; here they are of the toolchain's types.
// `Process` is on macOS only.

import FoundationEssentials

public let NSDebugDescriptionErrorKey: String = ""

@frozen public struct ObjCBool: ExpressibleByBooleanLiteral {
    public init(_ value: Bool) {}
    public init(booleanLiteral value: Bool) {}
    public var boolValue: Bool { false }
}

// MARK: Text and bytes

public struct CharacterSet: Sendable {
    public static var whitespaces: CharacterSet { fatalError() }
    public static var whitespacesAndNewlines: CharacterSet { fatalError() }
}
public struct NSStringCompareOptions: OptionSet, Sendable {
    public var rawValue: UInt
    public init(rawValue: UInt) {}
    public static var caseInsensitive: NSStringCompareOptions { fatalError() }
}
extension StringProtocol {
    public func trimmingCharacters(in set: CharacterSet) -> String { "" }
    public func replacingOccurrences<Target: StringProtocol, Replacement: StringProtocol>(
        of target: Target, with replacement: Replacement
    ) -> String { "" }
    public func range<T: StringProtocol>(of text: T, options: NSStringCompareOptions = []) -> Range<Index>? { nil }
}
public struct DataSearchOptions: OptionSet, Sendable {
    public var rawValue: UInt
    public init(rawValue: UInt) {}
    public static var backwards: DataSearchOptions { fatalError() }
}
extension Data {
    public func range(of data: Data, options: DataSearchOptions = [], in range: Range<Index>? = nil) -> Range<Index>? {
        nil
    }
}
open class DateFormatter: NSObject {
    open var locale: Locale!
    open var timeZone: TimeZone!
    open var dateFormat: String!
    open func string(from date: Date) -> String { "" }
}
open class PropertyListSerialization: NSObject {
    public enum PropertyListFormat: UInt, Sendable { case openStep = 1, xml = 100, binary = 200 }
    public struct MutabilityOptions: OptionSet, Sendable {
        public var rawValue: UInt
        public init(rawValue: UInt) {}
    }
    open class func data(fromPropertyList list: Any, format: PropertyListFormat, options: Int) throws -> Data { Data() }
    open class func propertyList(
        from data: Data, options: MutabilityOptions = [], format: UnsafeMutablePointer<PropertyListFormat>?
    ) throws -> Any { data }
}

// MARK: Files and processes

extension FileManager {
    open class DirectoryEnumerator: NSObject, Sequence, IteratorProtocol {
        public func next() -> Any? { nil }
    }
    public func enumerator(atPath path: String) -> DirectoryEnumerator? { nil }
    public func fileExists(atPath path: String, isDirectory: UnsafeMutablePointer<ObjCBool>?) -> Bool { false }
}
open class FileHandle: NSObject, @unchecked Sendable {
    open class var nullDevice: FileHandle { fatalError() }
    public convenience init(forWritingTo url: URL) throws { fatalError() }
    public convenience init(forReadingFrom url: URL) throws { fatalError() }
    public convenience init(forUpdating url: URL) throws { fatalError() }
    open var availableData: Data { Data() }
    public func write<T: DataProtocol>(contentsOf data: T) throws {}
    @discardableResult public func seekToEnd() throws -> UInt64 { 0 }
    open func seek(toOffset offset: UInt64) throws {}
    open func truncate(atOffset offset: UInt64) throws {}
    open func close() throws {}
    public func readToEnd() throws -> Data? { nil }
    public func read(upToCount count: Int) throws -> Data? { nil }
}
open class Pipe: NSObject, @unchecked Sendable {
    open var fileHandleForReading: FileHandle { fatalError() }
    open var fileHandleForWriting: FileHandle { fatalError() }
}
#if APPLE_macOS
    open class Process: NSObject, @unchecked Sendable {
        open var executableURL: URL?
        open var arguments: [String]?
        open var environment: [String: String]?
        open var standardInput: Any?
        open var standardOutput: Any?
        open var standardError: Any?
        open var terminationStatus: Int32 { 0 }
        open var isRunning: Bool { false }
        open var processIdentifier: Int32 { 0 }
        open func run() throws {}
        open func terminate() {}
        open func waitUntilExit() {}
    }
#endif
extension NSCondition {
    public func wait(until limit: Date) -> Bool { false }
}

// MARK: Sessions

extension HTTPCookiePropertyKey {
    public static let name = HTTPCookiePropertyKey("")
    public static let value = HTTPCookiePropertyKey("")
    public static let path = HTTPCookiePropertyKey("")
    public static let domain = HTTPCookiePropertyKey("")
    public static let version = HTTPCookiePropertyKey("")
}
extension URLSession {
    public func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) { fatalError() }
    public func download(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) { fatalError() }
    public func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) { fatalError() }
    public func upload(
        for request: URLRequest, fromFile file: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) { fatalError() }
    public func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { fatalError() }
    public func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask { fatalError() }
    public func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask { fatalError() }
    public func webSocketTask(with url: URL) -> URLSessionWebSocketTask { fatalError() }
}
extension URLSessionWebSocketTask {
    public enum Message: Sendable {
        case data(Data)
        case string(String)
    }
    public func send(_ message: Message) async throws {}
    public func receive() async throws -> Message { fatalError() }
}

open class JSONSerialization: NSObject {
    public struct ReadingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static var fragmentsAllowed: ReadingOptions { fatalError() }
    }

    open class func jsonObject(with data: Data, options opt: ReadingOptions = []) throws -> Any { fatalError() }
}

extension URLSessionConfiguration {
    /// Apple's documentation: iOS 18.4, macOS 15.4, tvOS 18.4, watchOS 11.4, visionOS 2.4.
    public var usesClassicLoadingMode: Bool {
        get { true }
        set {}
    }
}

public let NSURLAuthenticationMethodNTLM = ""
public let NSURLAuthenticationMethodNegotiate = ""
