// Module Darwin, further: sockets, pipes and what else the tests use of the C library.
//
// Facts: xnu's sys/socket.h, netinet/in.h, arpa/inet.h, sys/poll.h, unistd.h and sys/stat.h as Swift imports them.
// Certain: names, parameter types, order of the fields. Values of constants are not all Darwin's: only types are
// checked.

public typealias socklen_t = UInt32
public typealias sa_family_t = UInt8
public typealias in_addr_t = UInt32
public typealias in_port_t = UInt16
public typealias nfds_t = UInt32

@frozen public struct sockaddr {
    public var sa_len: UInt8 = 0
    public var sa_family: sa_family_t = 0
    public init() {}
}
@frozen public struct in_addr {
    public var s_addr: in_addr_t = 0
    public init() {}
    public init(s_addr: in_addr_t) {}
}
@frozen public struct sockaddr_in {
    public var sin_len: UInt8 = 0
    public var sin_family: sa_family_t = 0
    public var sin_port: in_port_t = 0
    public var sin_addr = in_addr()
    public init() {}
}
@frozen public struct pollfd {
    public var fd: Int32 = 0
    public var events: Int16 = 0
    public var revents: Int16 = 0
    public init() {}
    public init(fd: Int32, events: Int16, revents: Int16) {}
}

@frozen public struct in6_addr {
    public init() {}
}

public var AF_INET: Int32 { 2 }
public var AF_INET6: Int32 { 30 }
public var INET6_ADDRSTRLEN: Int32 { 46 }
public var SOCK_STREAM: Int32 { 1 }
public var SOL_SOCKET: Int32 { 0xffff }
public var SO_NOSIGPIPE: Int32 { 0x1022 }
public var SHUT_RDWR: Int32 { 2 }
public var POLLIN: Int32 { 1 }
public var ECONNABORTED: Int32 { 53 }

public func socket(_ family: Int32, _ type: Int32, _ protocol: Int32) -> Int32 { 0 }
public func inet_pton(_ family: Int32, _ text: UnsafePointer<CChar>!, _ address: UnsafeMutableRawPointer!) -> Int32 { 0 }
public func inet_ntop(
    _ family: Int32, _ address: UnsafeRawPointer!, _ text: UnsafeMutablePointer<CChar>!, _ length: socklen_t
) -> UnsafePointer<CChar>! { nil }
public func bind(_ socket: Int32, _ address: UnsafePointer<sockaddr>!, _ length: socklen_t) -> Int32 { 0 }
public func listen(_ socket: Int32, _ backlog: Int32) -> Int32 { 0 }
public func accept(
    _ socket: Int32, _ address: UnsafeMutablePointer<sockaddr>!, _ length: UnsafeMutablePointer<socklen_t>!
) -> Int32 { 0 }
public func getsockname(
    _ socket: Int32, _ address: UnsafeMutablePointer<sockaddr>!, _ length: UnsafeMutablePointer<socklen_t>!
) -> Int32 { 0 }
public func setsockopt(
    _ socket: Int32, _ level: Int32, _ name: Int32, _ value: UnsafeRawPointer!, _ length: socklen_t
) -> Int32 { 0 }
public func recv(_ socket: Int32, _ buffer: UnsafeMutableRawPointer!, _ count: Int, _ flags: Int32) -> Int { 0 }
public func sendto(
    _ socket: Int32, _ buffer: UnsafeRawPointer!, _ count: Int, _ flags: Int32, _ address: UnsafePointer<sockaddr>!,
    _ length: socklen_t
) -> Int { 0 }
public func shutdown(_ socket: Int32, _ how: Int32) -> Int32 { 0 }
public func poll(_ files: UnsafeMutablePointer<pollfd>!, _ count: nfds_t, _ timeout: Int32) -> Int32 { 0 }
public func pipe(_ files: UnsafeMutablePointer<Int32>!) -> Int32 { 0 }
public func mkfifo(_ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 { 0 }
public func mknod(_ path: UnsafePointer<CChar>!, _ mode: mode_t, _ device: dev_t) -> Int32 { 0 }
@discardableResult public func atexit(_ body: (@convention(c) () -> Void)!) -> Int32 { 0 }
