import AsyncHTTPClient
import NIOCore
import NIOHPACK
import NIOHTTP1
import NIOHTTP2

extension HTTPClient.Configuration {
    /// Makes an error of an answer at which AsyncHTTPClient 1.37 ends the process: one with a status below 100, such as
    /// `HTTP/1.1 000 What`, counts as an interim one, and its body finds no head. In HTTP/2 a `:status` may also be
    /// negative, which no type of SwiftNIO can hold. Any server could do that (RFC 9110 §15 has 100 to 599).
    ///
    /// The client calls these two closures with each connection, and with each stream of HTTP/2, when its own handlers
    /// are in place. What the app has set is called, too.
    mutating func refuseAnswersThatEndTheProcess() {
        http1_1ConnectionDebugInitializer = { [next = http1_1ConnectionDebugInitializer] channel in
            let pipeline = channel.pipeline.syncOperations
            // If the client should ever parse in another way, its connections work as without this.
            if let parser = try? pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self) {
                let guardian = StatusGuard<HTTPClientResponsePart> { part in
                    if case .head(let head) = part { head.status.code < 100 } else { false }
                }
                try? pipeline.addHandler(guardian, position: .after(parser))
            }
            return next?(channel) ?? channel.eventLoop.makeSucceededVoidFuture()
        }
        http2StreamChannelDebugInitializer = { [next = http2StreamChannelDebugInitializer] channel in
            let guardian = StatusGuard<HTTP2Frame.FramePayload> { part in
                guard case .headers(let frame) = part else { return false }
                return frame.headers[":status"].contains { !(100...999).contains(Int($0) ?? 0) }
            }
            try? channel.pipeline.syncOperations.addHandler(guardian, position: .first)
            return next?(channel) ?? channel.eventLoop.makeSucceededVoidFuture()
        }
    }
}

/// Lets nothing pass from the first part that is refused on. The client's own handler behind it hears of an error,
/// fails the request and closes.
private final class StatusGuard<Part: Sendable>: ChannelInboundHandler {
    typealias InboundIn = Part

    private let isRefused: @Sendable (Part) -> Bool
    private var hasRefused = false

    init(refusing isRefused: @escaping @Sendable (Part) -> Bool) { self.isRefused = isRefused }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasRefused else { return }
        guard isRefused(unwrapInboundIn(data)) else { return context.fireChannelRead(data) }
        hasRefused = true
        context.fireErrorCaught(HTTPParserError.invalidStatus)
    }
}
