// Module Foundation, further: strings, and what the tests list of a folder.
//
// Facts: Apple's documentation of NSString and NSFileManager, in their Swift forms. Certain.

extension String {
    public init(format: String, _ arguments: any CVarArg...) { self = "" }
}
extension FileManager {
    public func enumerator(at url: URL, includingPropertiesForKeys keys: [URLResourceKey]?) -> DirectoryEnumerator? { nil }
}
extension FileManager.DirectoryEnumerator {
    public var allObjects: [Any] { [] }
}
