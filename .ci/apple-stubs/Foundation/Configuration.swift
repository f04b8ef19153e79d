// Module Foundation, further: settings of a session that a transport cannot follow.
//
// Facts: Apple's documentation of URLSessionConfiguration (Foundation) and of tls_protocol_version_t (Security). Certain.

public enum tls_protocol_version_t: UInt16, Sendable {
    case TLSv12 = 0x0303
    case TLSv13 = 0x0304
}

extension URLSessionConfiguration {
    public var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t {
        get { .TLSv12 }
        set {}
    }
    public var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t {
        get { .TLSv13 }
        set {}
    }
}
