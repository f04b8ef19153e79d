import Foundation

#if canImport(Darwin) || canImport(Musl) || canImport(Android)
    private let streamType = SOCK_STREAM
#else
    private let streamType = Int32(SOCK_STREAM.rawValue)
#endif
#if canImport(Darwin)
    private let noSignal: Int32 = 0
#else
    private let noSignal = Int32(MSG_NOSIGNAL)
#endif

/// One connected socket. Its owner closes it once, after the last use.
public struct StreamSocket: Sendable {
    public let descriptor: Int32

    /// The next bytes; nil at the end of the stream or after an error.
    public func receive() -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &bytes, bytes.count, 0)
            if count > 0 { return Array(bytes.prefix(count)) }
            if count < 0, errno == EINTR { continue }
            return nil
        }
    }

    /// False if the peer has closed the connection. There is never a SIGPIPE.
    public func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer -> Int in
                guard let base = buffer.baseAddress else { return 0 }
                // `sendto`, since `send` would be this function.
                return sendto(descriptor, base + sent, buffer.count - sent, noSignal, nil, 0)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Wakes the thread that reads or writes. The descriptor stays valid.
    public func shutDown() {
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
    }

    public func close() {
        closeDescriptor(descriptor)
    }
}

/// A listening socket on 127.0.0.1 with a port of the system's choice, and a pipe that ends `accept`.
public struct LoopbackListener: Sendable {
    public let port: UInt16
    private let descriptor: Int32
    private let wakeReader: Int32
    private let wakeWriter: Int32

    public init() throws {
        let descriptor = socket(AF_INET, streamType, 0)
        guard descriptor >= 0 else { throw error("socket") }
        setCloseOnExec(descriptor)
        do {
            port = try bindLoopback(descriptor)
            guard startListening(descriptor) == 0 else { throw error("listen") }
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { throw error("pipe") }
            ends.forEach(setCloseOnExec)
            wakeReader = ends[0]
            wakeWriter = ends[1]
        } catch {
            closeDescriptor(descriptor)
            throw error
        }
        self.descriptor = descriptor
    }

    /// The next connection; nil once `wake()` was called.
    public func accept() -> StreamSocket? {
        while true {
            var polled = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: wakeReader, events: Int16(POLLIN), revents: 0),
            ]
            if poll(&polled, 2, -1) < 0 {
                guard errno == EINTR else { return nil }
                continue
            }
            if polled[1].revents != 0 { return nil }
            let connection = acceptConnection(descriptor)
            if connection >= 0 {
                setCloseOnExec(connection)
                return StreamSocket(descriptor: connection)
            }
            guard errno == EINTR || errno == ECONNABORTED || errno == EAGAIN else { return nil }
        }
    }

    public func wake() {
        closeDescriptor(wakeWriter)
    }

    /// To be called by the accepting thread, after `accept()` returned nil.
    public func close() {
        closeDescriptor(descriptor)
        closeDescriptor(wakeReader)
    }
}

/// A port of 127.0.0.1 that refuses connections: it is bound, so that no server gets it, and nothing listens there.
public final class RefusingPort: Sendable {
    public let port: UInt16
    private let descriptor: Int32

    public init() throws {
        descriptor = socket(AF_INET, streamType, 0)
        guard descriptor >= 0 else { throw error("socket") }
        setCloseOnExec(descriptor)
        do {
            port = try bindLoopback(descriptor)
        } catch {
            closeDescriptor(descriptor)
            throw error
        }
    }

    deinit {
        closeDescriptor(descriptor)
    }

    /// `path` begins with a slash.
    public func url(_ path: String = "/") -> URL {
        URL(string: "http://127.0.0.1:\(port)\(path)") ?? URL(fileURLWithPath: path)
    }
}

/// The port that the system chose.
private func bindLoopback(_ descriptor: Int32) throws -> UInt16 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic -> Int32 in
            guard bind(descriptor, generic, length) == 0 else { return -1 }
            return getsockname(descriptor, generic, &length)
        }
    }
    guard result == 0 else { throw error("bind") }
    return UInt16(bigEndian: address.sin_port)
}

private func error(_ what: String) -> CocoaError {
    CocoaError(.fileReadUnknown, userInfo: [NSDebugDescriptionErrorKey: "\(what): errno \(errno)"])
}

// `listen`, `accept` and `close` under other names, since members of the same names hide them.

private func startListening(_ descriptor: Int32) -> Int32 { listen(descriptor, 128) }

private func acceptConnection(_ descriptor: Int32) -> Int32 { accept(descriptor, nil, nil) }

private func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }

private func setCloseOnExec(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    #if canImport(Darwin)
        var one: Int32 = 1
        _ = setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &one, socklen_t(MemoryLayout<Int32>.size))
    #endif
}
