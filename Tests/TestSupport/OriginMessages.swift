import Foundation
import Testing

/// One request as the origin read it from the wire.
public struct OriginRequest: Sendable {
    public var method: String
    /// Path and query as sent.
    public var target: String
    public var fields: OriginFields
    public var body: Data
    /// 1 for the first request that the server saw, over all connections.
    public var number: Int
    /// 1 for the first connection that the server accepted.
    public var connection: Int

    public var path: String { String(target.prefix { $0 != "?" }) }
}

/// The origin's answer. The defaults make an ordinary `200 OK` on a connection that is kept alive.
///
/// The origin adds `Content-Length` (or chunked framing) and `Date` unless `fields` has them.
public struct OriginResponse: Sendable {
    public struct Interim: Sendable {
        public var status: Int
        public var reason: String
        public var fields: OriginFields

        public init(status: Int, reason: String = "", fields: OriginFields = [:]) {
            self.status = status
            self.reason = reason
            self.fields = fields
        }
    }

    public var status: Int
    public var reason: String
    /// Sent in this order; a name that occurs twice is sent as two lines.
    public var fields: OriginFields
    public var body: Data

    /// 1xx responses sent before this one.
    public var interim: [Interim]
    public var sendsDate: Bool
    public var isChunked: Bool
    /// The body is written in parts of this many bytes, so that `beforePart` can hold it anywhere.
    public var partSize: Int?
    /// Called before the status line is written. A test may block in it, for example by a `Gate`.
    public var beforeHead: (@Sendable () -> Void)?
    /// Called before the part with the given number, from 0, is written.
    public var beforePart: (@Sendable (Int) -> Void)?
    public var ending: Ending
    /// If set, these bytes are sent instead of everything above, and then the connection is closed.
    public var rawBytes: Data?

    public enum Ending: Sendable, Equatable {
        case keepAlive
        /// Announced by `Connection: close`.
        case close
        /// The connection is closed after this many bytes of the body, which is then shorter than announced.
        case cutBody(after: Int)
        /// The connection is closed without a response.
        case noResponse
    }

    public init(
        status: Int = 200, reason: String = "OK", fields: OriginFields = [:], body: Data = Data(),
        interim: [Interim] = [], sendsDate: Bool = true, isChunked: Bool = false, partSize: Int? = nil,
        beforeHead: (@Sendable () -> Void)? = nil, beforePart: (@Sendable (Int) -> Void)? = nil,
        ending: Ending = .keepAlive, rawBytes: Data? = nil
    ) {
        self.status = status
        self.reason = reason
        self.fields = fields
        self.body = body
        self.interim = interim
        self.sendsDate = sendsDate
        self.isChunked = isChunked
        self.partSize = partSize
        self.beforeHead = beforeHead
        self.beforePart = beforePart
        self.ending = ending
        self.rawBytes = rawBytes
    }

    public static func ok(_ body: String = "", _ fields: OriginFields = [:]) -> OriginResponse {
        OriginResponse(fields: fields, body: Data(body.utf8))
    }

    public static func status(_ status: Int, _ reason: String = "", _ fields: OriginFields = [:]) -> OriginResponse {
        OriginResponse(status: status, reason: reason, fields: fields)
    }
}

/// Makes the origin's threads wait at a point that the test chooses, without sleeping.
///
/// `@unchecked Sendable`: `isOpen` and `arrivals` are touched only while `condition` is locked.
public final class Gate: @unchecked Sendable {
    private let condition = NSCondition()
    private var isOpen = false
    private var arrivals = 0

    public init() {}

    /// Blocks the calling thread until `open()`. If a failed test never opens the gate, it opens by itself in the end,
    /// so that no thread blocks for ever.
    public func wait() {
        var patience = Patience(times: 5)
        condition.lock()
        arrivals += 1
        while !isOpen, !patience.isOver() { _ = condition.wait(until: Date(timeIntervalSinceNow: 0.1)) }
        condition.unlock()
    }

    public func open() {
        condition.lock()
        isOpen = true
        condition.broadcast()
        condition.unlock()
    }

    /// Returns once `wait()` has been called `count` times.
    public func arrival(_ count: Int = 1, sourceLocation: SourceLocation = #_sourceLocation) async {
        await eventually("arrival \(count) at the gate", sourceLocation: sourceLocation) { hasArrived(count) }
    }

    private func hasArrived(_ count: Int) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        return arrivals >= count
    }
}
