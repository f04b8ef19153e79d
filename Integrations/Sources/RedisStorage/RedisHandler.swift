import Dispatch
import NIOConcurrencyHelpers
import NIOCore

/// Commands that are sent together, and the caller who waits for their replies.
final class RedisCall: Sendable {
    typealias Replies = Result<[RESPValue], RedisFailure>

    let commands: [RESPCommand]
    private let replies = NIOLockedValueBox<Replies?>(nil)
    private let isDone = DispatchSemaphore(value: 0)
    private let then: (@Sendable (Replies) -> Void)?

    /// - Parameter then: called with the replies; if it is given, no thread waits.
    init(_ commands: [RESPCommand], then: (@Sendable (Replies) -> Void)? = nil) {
        self.commands = commands
        self.then = then
    }

    /// The first result counts.
    func finish(_ result: Replies) {
        let isFirst = replies.withLockedValue { replies in
            guard replies == nil else { return false }
            replies = result
            return true
        }
        guard isFirst else { return }
        if let then { then(result) } else { isDone.signal() }
    }

    /// Nil after a timeout.
    func wait(seconds: Double) -> Replies? {
        _ = isDone.wait(timeout: .now() + seconds)
        return replies.withLockedValue { $0 }
    }
}

/// One connection. Sends commands, and gives the replies, which come in the same order, to their calls.
///
/// `@unchecked Sendable`: everything here happens on the event loop of the connection.
final class RedisHandler: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The names that the server gave to the scripts.
    var digests: [Script: String] = [:]
    /// Called once, when the connection has ended.
    var didClose: (() -> Void)?

    private let address: String
    private let longestString: Int
    private var context: ChannelHandlerContext?
    private var calls = CircularBuffer<RedisCall>()
    /// The replies to the first call that have arrived so far.
    private var replies: [RESPValue] = []
    private var received = ByteBuffer()
    private var failure: RedisFailure?

    /// A lookup's reply has at most this many long strings, and a few bytes more.
    private static let mostStrings = 33

    init(address: String, longestString: Int) {
        self.address = address
        self.longestString = longestString
    }

    /// The number of calls whose replies have not arrived.
    var load: Int { calls.count }

    func has(_ call: RedisCall) -> Bool { calls.contains { $0 === call } }

    func send(_ call: RedisCall) {
        guard let context, failure == nil else {
            context?.close(promise: nil)
            return call.finish(.failure(failure ?? ended))
        }
        calls.append(call)
        var buffer = context.channel.allocator.buffer(capacity: 1_024)
        for command in call.commands { command.write(to: &buffer, digests) }
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    /// The connection is out of use at once. With TLS its end may take seconds, since that waits for the server's word.
    func close(_ failure: RedisFailure) {
        if self.failure == nil { self.failure = failure }
        let context = context
        end()
        context?.close(promise: nil)
    }

    private var ended: RedisFailure {
        RedisFailure(.notRedis, "\(address) ended the connection. Is it a Redis server, and does it want TLS?")
    }

    // MARK: The connection

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    func channelInactive(context: ChannelHandlerContext) { end() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        close(
            RedisFailure(
                .unreachable, "The connection to \(address) failed: \(error). Does the server want TLS, and do you?"))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard self.context != nil else { return }
        var arrived = unwrapInboundIn(data)
        if received.readableBytes == 0 { received = arrived } else { received.writeBuffer(&arrived) }
        do throws(NotRedis) {
            while let reply = try RESPReader.next(&received, longestString: longestString) {
                guard let call = calls.first else { throw NotRedis() }
                replies.append(reply)
                guard replies.count == call.commands.count else { continue }
                calls.removeFirst()
                call.finish(.success(replies))
                replies = []
            }
            // Without this a buffer grows as long as no read ends with the end of a reply. What is left came with this
            // read, so it is short.
            received.discardReadBytes()
            guard received.readableBytes <= Self.mostStrings * longestString else { throw NotRedis() }
        } catch {
            close(
                RedisFailure(.notRedis, "\(address) does not speak the protocol of Redis. Is the port the right one?"))
        }
    }

    private func end() {
        guard context != nil else { return }
        context = nil
        let failed = calls
        calls = []
        for call in failed { call.finish(.failure(failure ?? ended)) }
        didClose?()
        didClose = nil
    }
}
