import AsyncHTTPClient
import Foundation
import NIOSSL

/// Whose answers a client's TLS configuration brings: the server knows the client by its certificate, and no request shows it.
enum TLSIdentity: Equatable, Sendable {
    /// The server is verified, and the client does not say who it is.
    case anonymous
    /// Such answers are kept apart under this name.
    case named(String)
    /// A callback decides, or a file that may change: such answers are not stored.
    case unknown

    init(_ tls: TLSConfiguration?) {
        guard let tls else {
            self = .anonymous
            return
        }
        guard (tls as any HasKeyCallback).pskClientCallback == nil, tls.pskClientProvider == nil,
            tls.sslContextCallback == nil
        else {
            self = .unknown
            return
        }
        var name = ""
        // What anybody on the way can answer is nothing for a client that verifies the server.
        switch tls.certificateVerification {
        case .fullVerification: break
        case .noHostnameVerification: name = "unverified name "
        default: name = "unverified "
        }
        for source in tls.certificateChain {
            guard case .certificate(let certificate) = source, let bytes = try? certificate.toDERBytes() else {
                self = .unknown
                return
            }
            name += "\(Data(bytes).base64EncodedString()) "
        }
        self = name.isEmpty ? .anonymous : .named(name)
    }
}

/// The older form of `pskClientProvider`. It is deprecated, but an app may use it.
private protocol HasKeyCallback {
    var pskClientCallback: NIOPSKClientIdentityCallback? { get }
}

extension TLSConfiguration: HasKeyCallback {}
