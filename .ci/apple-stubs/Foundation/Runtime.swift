// Module Foundation, further: what it exports of the Objective-C runtime.
//
// Facts: Apple's documentation of the Objective-C runtime (objc/runtime.h), as Swift imports it. Certain.

public enum objc_AssociationPolicy: UInt, Sendable {
    case OBJC_ASSOCIATION_ASSIGN = 0
    case OBJC_ASSOCIATION_RETAIN_NONATOMIC = 1
    case OBJC_ASSOCIATION_COPY_NONATOMIC = 3
    case OBJC_ASSOCIATION_RETAIN = 769
    case OBJC_ASSOCIATION_COPY = 771
}
public func objc_setAssociatedObject(
    _ object: Any, _ key: UnsafeRawPointer, _ value: Any?, _ policy: objc_AssociationPolicy
) {}
public func objc_getAssociatedObject(_ object: Any, _ key: UnsafeRawPointer) -> Any? { nil }

// Facts: Apple's documentation of StringProtocol. Certain.
extension StringProtocol {
    public var removingPercentEncoding: String? { nil }
}
