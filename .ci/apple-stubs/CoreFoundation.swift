// Module CoreFoundation, as far as the library uses it. Facts: CFRunLoop.h of Apple's SDK as Swift imports it; certain.

import Foundation

public typealias CFTypeRef = AnyObject
public typealias CFArray = NSArray
public typealias CFString = NSString

public final class CFRunLoop {}
public struct CFRunLoopMode: RawRepresentable, Hashable, Sendable {
    public var rawValue: CFString { fatalError() }
    public init(rawValue: CFString) {}
    public static func == (left: CFRunLoopMode, right: CFRunLoopMode) -> Bool { true }
    public func hash(into hasher: inout Hasher) {}
    public static var defaultMode: CFRunLoopMode { fatalError() }
    public static var commonModes: CFRunLoopMode { fatalError() }
}
public func CFRunLoopGetCurrent() -> CFRunLoop! { nil }
public func CFRunLoopCopyCurrentMode(_ loop: CFRunLoop!) -> CFRunLoopMode! { nil }
public func CFRunLoopPerformBlock(_ loop: CFRunLoop!, _ mode: CFTypeRef!, _ block: (() -> Void)!) {}
public func CFRunLoopWakeUp(_ loop: CFRunLoop!) {}
public func CFRunLoopGetMain() -> CFRunLoop! { nil }
public func CFRunLoopAddCommonMode(_ loop: CFRunLoop!, _ mode: CFRunLoopMode!) {}
public enum CFRunLoopRunResult: Int32, Sendable { case finished = 1, stopped, timedOut, handledSource }
@discardableResult public func CFRunLoopRunInMode(
    _ mode: CFRunLoopMode!, _ seconds: Double, _ returnAfterSourceHandled: Bool
) -> CFRunLoopRunResult { .finished }
