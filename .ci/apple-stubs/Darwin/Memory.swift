// Module Darwin, further: the memory of a process, for the tests.
//
// Facts: xnu's sys/resource.h as Swift imports it. Certain: names and types. Of the structure only the field that is
// used.

public let RUSAGE_SELF: Int32 = 0

@frozen public struct rusage {
    public var ru_maxrss: Int = 0
    public init() {}
}
public func getrusage(_ who: Int32, _ usage: UnsafeMutablePointer<rusage>?) -> Int32 { 0 }

// From pthread.h: what runs in a child that was forked.
public func pthread_atfork(
    _ prepare: (@convention(c) () -> Void)?, _ parent: (@convention(c) () -> Void)?, _ child: (@convention(c) () -> Void)?
) -> Int32 { 0 }
