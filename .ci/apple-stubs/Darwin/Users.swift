// <pwd.h>: the user database.
public struct passwd {
    public var pw_dir: UnsafeMutablePointer<CChar>!
    public init() {}
}
public func getpwuid(_ user: uid_t) -> UnsafeMutablePointer<passwd>! { nil }

@discardableResult public func fchmodat(_ folder: Int32, _ path: UnsafePointer<CChar>!, _ mode: mode_t, _ flag: Int32) -> Int32 { 0 }
public func clock() -> UInt { 0 }
