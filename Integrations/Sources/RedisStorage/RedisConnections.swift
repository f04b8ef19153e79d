import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import NIOSSL

/// The connections to a server, and the only place where a thread waits for it.
///
/// `@unchecked Sendable`: `open`, `connecting`, `nextConnect` and `waiting` are used on `loop` only.
final class RedisConnections: @unchecked Sendable {
    private let configuration: RedisStorage.Configuration
    private let tls: NIOSSLContext?
    /// One thread, which reads replies and never waits.
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let loop: any EventLoop
    private let breaker = NIOLockedValueBox(Breaker())

    private var open: [RedisHandler] = []
    private var connecting = 0
    /// Before it no further connection is made beside one that works.
    private var nextConnect = NIODeadline.uptimeNanoseconds(0)
    /// Calls that wait for a connection.
    private var waiting: [RedisCall] = []

    /// After a failure no command is sent for a while; then one call tries.
    private struct Breaker {
        /// Nil while the server answers.
        var opensAt: NIODeadline?
    }

    init(_ configuration: RedisStorage.Configuration) throws(RedisFailure) {
        self.configuration = configuration
        loop = group.next()
        do {
            tls = try configuration.tls.map { try NIOSSLContext(configuration: $0) }
        } catch {
            group.shutdownGracefully { _ in }
            throw RedisFailure(.unreachable, "The TLS configuration cannot be used: \(error).")
        }
        loop.execute { [self] in connect() }
    }

    /// There are no calls after this.
    func close() {
        loop.execute { [self] in
            for connection in open { connection.close(unreachable("The storage was closed.")) }
        }
        group.shutdownGracefully { _ in }
    }

    // MARK: Calls

    enum Outcome {
        case replies([RESPValue])
        /// - Parameter isNews: whether this is the first failure after a success.
        case failed(RedisFailure, isNews: Bool)
        /// Nothing was sent, since the server failed a moment ago.
        case paused
    }

    /// Sends commands together, and waits for the replies. Returns within the configured time.
    /// - Parameter commands: not made in a pause, in which there may be many.
    func call(_ commands: @autoclosure () -> [RESPCommand]) -> Outcome {
        let now = NIODeadline.now()
        let isTrying: Bool? = breaker.withLockedValue { breaker in
            guard let opensAt = breaker.opensAt else { return false }
            guard now >= opensAt else { return nil }
            // All other calls are misses until this one has its answer.
            breaker.opensAt = now + .seconds(configuration.timeout + configuration.pause)
            return true
        }
        guard let isTrying else { return .paused }
        let call = RedisCall(commands())
        loop.execute { [self] in submit(call) }
        let failure: RedisFailure
        switch call.wait(seconds: configuration.timeout) {
        case .success(let replies)?:
            breaker.withLockedValue { $0.opensAt = nil }
            return .replies(replies)
        case .failure(let given)?:
            failure = given
        case nil:
            failure = RedisFailure(
                .timedOut,
                "\(configuration.address) did not answer within \(configuration.timeout) seconds. Is it overloaded or far away? "
                    + "`timeout` says how long a lookup may wait.")
            call.finish(.failure(failure))
            loop.execute { [self] in abandon(call, failure) }
        }
        return .failed(failure, isNews: pause() || isTrying)
    }

    /// Begins a pause, in which no command is sent. False if there is one already.
    @discardableResult
    func pause() -> Bool {
        breaker.withLockedValue { breaker in
            defer { breaker.opensAt = .now() + .seconds(configuration.pause) }
            return breaker.opensAt == nil
        }
    }

    /// Ends all connections; the next call makes a new one.
    func reset(_ failure: RedisFailure) {
        loop.execute { [self] in
            for connection in open { connection.close(failure) }
        }
    }

    private func submit(_ call: RedisCall) {
        guard let connection = open.min(by: { $0.load < $1.load }) else {
            waiting.append(call)
            if connecting == 0 { connect() }
            return
        }
        let mayConnect = open.count + connecting < configuration.connections && NIODeadline.now() >= nextConnect
        if connection.load > 0, mayConnect { connect() }
        connection.send(call)
    }

    /// The caller waits no longer. A late reply would be taken for the reply to the next call, so the connection is
    /// ended.
    private func abandon(_ call: RedisCall, _ failure: RedisFailure) {
        waiting.removeAll { $0 === call }
        open.first { $0.has(call) }?.close(failure)
    }

    // MARK: Connecting

    private func unreachable(_ text: String) -> RedisFailure { RedisFailure(.unreachable, text) }

    private func connect() {
        loop.preconditionInEventLoop()
        connecting += 1
        // It includes everything that follows the connection: TLS, the password, the scripts.
        let deadline = NIODeadline.now() + .seconds(configuration.connectTimeout)
        let bootstrap = ClientBootstrap(group: loop)
            .resolver(configuration.resolver)
            .connectTimeout(.seconds(configuration.connectTimeout))
            .channelOption(ChannelOptions.socketOption(.so_keepalive), value: 1)
            // Called for each address of the host that is tried, perhaps of several at a time.
            .channelInitializer { [tls, configuration] channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        try channel.pipeline.syncOperations.addHandler(
                            NIOSSLClientHandler(context: tls, serverHostname: configuration.serverName))
                    }
                    try channel.pipeline.syncOperations.addHandler(
                        RedisHandler(
                            address: configuration.address,
                            longestString: max(64 << 10, min(configuration.maximumEntrySize, 512 << 20))))
                }
            }
        let channel =
            switch configuration.server {
            case .host(let name, let port): bootstrap.connect(host: name, port: port)
            case .socket(let path): bootstrap.connect(unixDomainSocketPath: path)
            }
        channel.flatMapThrowing { try $0.pipeline.syncOperations.handler(type: RedisHandler.self) }
            .whenComplete { [self] result in
                switch result {
                case .success(let handler): greet(handler, by: deadline)
                case .failure(let error):
                    didFail(
                        unreachable("No connection to \(configuration.address): \(error). Does the server run there?"))
                }
            }
    }

    private func greet(_ handler: RedisHandler, by deadline: NIODeadline) {
        let end = loop.scheduleTask(deadline: deadline) { [configuration] in
            handler.close(
                RedisFailure(
                    .unreachable,
                    "\(configuration.address) took no connection within \(configuration.connectTimeout) seconds. Is it a Redis server, "
                        + "and does it want TLS? `connectTimeout` says how long that may take."))
        }
        handler.send(
            RedisCall(configuration.hello) { [self] replies in
                end.cancel()
                didConnect(handler, replies)
            })
    }

    private func didConnect(_ handler: RedisHandler, _ result: RedisCall.Replies) {
        let replies: [RESPValue]
        switch result {
        case .success(let given): replies = given
        case .failure(let failure): return didFail(failure)
        }
        for (index, reply) in replies.enumerated() {
            guard case .error(let text) = reply else { continue }
            // A server that does not know a command quotes its arguments, and the first command has the password.
            let hasPassword = index == 0 && configuration.password != nil
            let failure = RedisFailure.refusal(
                by: configuration.address, hasPassword ? "AUTH, with \(text.prefix { $0.isLetter })." : text)
            handler.close(failure)
            return didFail(failure)
        }
        for (script, reply) in zip(Script.allCases, replies.suffix(Script.allCases.count)) {
            handler.digests[script] = reply.text
        }
        connecting -= 1
        open.append(handler)
        handler.didClose = { [self] in open.removeAll { $0 === handler } }
        let calls = waiting
        waiting = []
        for call in calls { submit(call) }
    }

    private func didFail(_ failure: RedisFailure) {
        connecting -= 1
        nextConnect = .now() + .seconds(configuration.pause)
        guard open.isEmpty, connecting == 0 else { return }
        let calls = waiting
        waiting = []
        for call in calls { call.finish(.failure(failure)) }
    }
}

extension RedisStorage.Configuration {
    /// The first commands of each connection.
    fileprivate var hello: [RESPCommand] {
        var commands: [RESPCommand] = []
        if let password {
            commands.append(user.map { RESPCommand("AUTH", $0, password) } ?? RESPCommand("AUTH", password))
        }
        if database != 0 { commands.append(RESPCommand("SELECT", String(database))) }
        return commands + Script.allCases.map { RESPCommand("SCRIPT", "LOAD", $0.text) }
    }

    /// The server's name for TLS; nil if there is only an address.
    fileprivate var serverName: String? {
        if let tlsName { return tlsName }
        guard case .host(let name, _) = server, (try? SocketAddress(ipAddress: name, port: 0)) == nil else {
            return nil
        }
        return name
    }
}

extension RedisFailure {
    /// The failure for an error that the server sent instead of a reply.
    static func refusal(by address: String, _ text: String) -> RedisFailure {
        // A server cannot add lines to a log.
        let line = text.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : String($0) }.joined()
        return RedisFailure(
            .refused,
            "\(address) refuses: \(line) Check the password, the user's commands and keys, and whether the server may be written to."
        )
    }
}

extension TimeAmount {
    fileprivate static func seconds(_ seconds: Double) -> TimeAmount {
        .nanoseconds(Int64(min(max(0, seconds), 1e9) * 1e9))
    }
}
