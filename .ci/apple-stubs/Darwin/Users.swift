// <pwd.h>: the user database.
public struct passwd {
    public var pw_dir: UnsafeMutablePointer<CChar>!
    public init() {}
}
public func getpwuid(_ user: uid_t) -> UnsafeMutablePointer<passwd>! { nil }
