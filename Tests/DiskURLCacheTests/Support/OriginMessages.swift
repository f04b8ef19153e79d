import Foundation
import Testing

@testable import DiskURLCache

/// One request as the origin read it from the wire.
struct OriginRequest: Sendable {
    var method: String
    /// Path and query as sent.
    var target: String
    var fields: HeaderFields
    var body: Data
    /// 1 for the first request that the server saw, over all connections.
    var number: Int
    /// 1 for the first connection that the server accepted.
    var connection: Int

    var path: String { String(target.prefix { $0 != "?" }) }
}

/// The origin's answer. The defaults make an ordinary `200 OK` on a connection that is kept alive.
///
/// The origin adds `Content-Length` (or chunked framing) and `Date` unless `fields` has them.
struct OriginResponse: Sendable {
    struct Interim: Sendable {
        var status: Int
        var reason = ""
        var fields = HeaderFields()
    }

    var status = 200
    var reason = "OK"
    /// Sent in this order; a name that occurs twice is sent as two lines.
    var fields = HeaderFields()
    var body = Data()

    /// 1xx responses sent before this one.
    var interim: [Interim] = []
    var sendsDate = true
    var isChunked = false
    /// The body is written in parts of this many bytes, so that `beforePart` can hold it anywhere.
    var partSize: Int?
    /// Called before the status line is written. A test may block in it, for example by a `Gate`.
    var beforeHead: (@Sendable () -> Void)?
    /// Called before the part with the given number, from 0, is written.
    var beforePart: (@Sendable (Int) -> Void)?
    var ending = Ending.keepAlive
    /// If set, these bytes are sent instead of everything above, and then the connection is closed.
    var rawBytes: Data?

    enum Ending: Sendable, Equatable {
        case keepAlive
        /// Announced by `Connection: close`.
        case close
        /// The connection is closed after this many bytes of the body, which is then shorter than announced.
        case cutBody(after: Int)
        /// The connection is closed without a response.
        case noResponse
    }

    static func ok(_ body: String = "", _ fields: HeaderFields = [:]) -> OriginResponse {
        OriginResponse(fields: fields, body: Data(body.utf8))
    }

    static func status(_ status: Int, _ reason: String = "", _ fields: HeaderFields = [:]) -> OriginResponse {
        OriginResponse(status: status, reason: reason, fields: fields)
    }
}

/// Makes the origin's threads wait at a point that the test chooses, without sleeping.
///
/// `@unchecked Sendable`: `isOpen` and `arrivals` are touched only while `condition` is locked.
final class Gate: @unchecked Sendable {
    private let condition = NSCondition()
    private var isOpen = false
    private var arrivals = 0

    /// Blocks the calling thread until `open()`. If a failed test never opens the gate, it opens by itself in the end,
    /// so that no thread blocks for ever.
    func wait() {
        var patience = Patience(times: 5)
        condition.lock()
        arrivals += 1
        while !isOpen, !patience.isOver() { _ = condition.wait(until: Date(timeIntervalSinceNow: 0.1)) }
        condition.unlock()
    }

    func open() {
        condition.lock()
        isOpen = true
        condition.broadcast()
        condition.unlock()
    }

    /// Returns once `wait()` has been called `count` times.
    func arrival(_ count: Int = 1, sourceLocation: SourceLocation = #_sourceLocation) async {
        await eventually("arrival \(count) at the gate", sourceLocation: sourceLocation) { hasArrived(count) }
    }

    private func hasArrived(_ count: Int) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        return arrivals >= count
    }
}
