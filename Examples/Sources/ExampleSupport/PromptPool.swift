import FlyingFox
import FlyingSocks
import Foundation

/// FlyingFox writes the head and the body of an answer separately, and TCP would delay the body until the head is
/// acknowledged, about 40 ms later. Each socket passes through this pool before it is used, so the delay is turned off
/// here.
struct PromptPool<Base: AsyncSocketPool>: AsyncSocketPool {
    let base: Base

    func prepare() async throws { try await base.prepare() }

    func run() async throws { try await base.run() }

    func suspendSocket(_ socket: Socket, untilReadyFor events: Socket.Events) async throws {
        var isOn: Int32 = 1
        _ = setsockopt(
            socket.file.rawValue, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
        try await base.suspendSocket(socket, untilReadyFor: events)
    }
}

func promptPool() -> any AsyncSocketPool {
    func prompt(_ base: some AsyncSocketPool) -> any AsyncSocketPool { PromptPool(base: base) }
    return prompt(HTTPServer.defaultPool())
}
