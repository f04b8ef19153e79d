// Module Network, as far as the tests use it. Facts: Apple's documentation (Swift); certain, but for which closures are
// @Sendable: those of Xcode 16 and later.

import Foundation
import Security

public struct NWError: Error {}
public final class NWProtocolTLS {
    public class Options {
        public init() {}
        public var securityProtocolOptions: sec_protocol_options_t { fatalError() }
    }
}
public class NWParameters: @unchecked Sendable {
    public class NWProtocolTCPOptions {}
    public convenience init(tls: NWProtocolTLS.Options?) { fatalError() }
}
public enum NWEndpoint {
    public struct Port: Sendable { public var rawValue: UInt16 { 0 } }
}
public final class NWListener: @unchecked Sendable {
    public enum State: Sendable {
        case setup
        case waiting(NWError)
        case ready
        case failed(NWError)
        case cancelled
    }
    public init(using: NWParameters) throws {}
    public var newConnectionHandler: (@Sendable (NWConnection) -> Void)?
    public var stateUpdateHandler: (@Sendable (State) -> Void)?
    public var port: NWEndpoint.Port? { nil }
    public func start(queue: DispatchQueue) {}
    public func cancel() {}
}
public final class NWConnection: @unchecked Sendable {
    public class ContentContext: @unchecked Sendable {
        public static var defaultMessage: ContentContext { fatalError() }
    }
    public enum SendCompletion: Sendable {
        case contentProcessed(@Sendable (NWError?) -> Void)
        case idempotent
    }
    public func start(queue: DispatchQueue) {}
    public func cancel() {}
    public func receive(
        minimumIncompleteLength: Int, maximumLength: Int,
        completion: @escaping @Sendable (Data?, ContentContext?, Bool, NWError?) -> Void
    ) {}
    public func send(
        content: Data?, contentContext: ContentContext = .defaultMessage, isComplete: Bool = true, completion: SendCompletion
    ) {}
}
