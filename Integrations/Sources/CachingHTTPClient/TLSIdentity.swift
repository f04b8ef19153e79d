import AsyncHTTPClient
import Foundation
import NIOSSL

/// Whose answers a client's configuration brings: the server knows the client by its certificate, and the client
/// believes the servers that its roots and its names of hosts lead to. No request shows either.
enum TLSIdentity: Equatable, Sendable {
    /// The server is verified by the system's roots, and the client does not say who it is.
    case anonymous
    /// Such answers are kept apart under this name.
    case named(String)
    /// A callback decides, or a file that may change: such answers are not stored.
    case unknown

    /// - Parameter configuration: Roots in a file become those that the file has now: a later change of the file would
    ///   bring answers that belong under another name.
    init(_ configuration: inout HTTPClient.Configuration) {
        var text = ""
        if let tls = configuration.tlsConfiguration {
            guard let pinned = Self.pinRoots(of: tls), let named = Self.text(for: pinned) else {
                self = .unknown
                return
            }
            configuration.tlsConfiguration = pinned
            text = named
        }
        for (host, place) in configuration.dnsOverride.sorted(by: { $0.key < $1.key }) {
            text += "\(host) is \(place) "
        }
        self = text.isEmpty ? .anonymous : .named(SHA256Digest.digest(of: text).hex)
    }

    /// The same configuration without a file of roots; nil if there is none at the path, or a folder.
    private static func pinRoots(of tls: TLSConfiguration) -> TLSConfiguration? {
        var tls = tls
        if case .file(let path)? = tls.trustRoots {
            guard let roots = try? NIOSSLCertificate.fromPEMFile(path) else { return nil }
            tls.trustRoots = .certificates(roots)
        }
        for (place, source) in tls.additionalTrustRoots.enumerated() {
            guard case .file(let path) = source else { continue }
            guard let roots = try? NIOSSLCertificate.fromPEMFile(path) else { return nil }
            tls.additionalTrustRoots[place] = .certificates(roots)
        }
        return tls
    }

    /// All that makes the configuration another one's; nil if that is not known.
    private static func text(for tls: TLSConfiguration) -> String? {
        guard (tls as any HasKeyCallback).pskClientCallback == nil, tls.pskClientProvider == nil,
            tls.sslContextCallback == nil
        else { return nil }
        var text = ""
        // An answer that anybody on the way can give is not for a client that verifies the server.
        switch tls.certificateVerification {
        case .fullVerification: break
        case .noHostnameVerification: text = "unverified name "
        default: text = "unverified "
        }
        for source in tls.certificateChain {
            guard case .certificate(let certificate) = source, let bytes = try? certificate.toDERBytes() else {
                return nil
            }
            text += "is \(Data(bytes).base64EncodedString()) "
        }
        var roots: [NIOSSLCertificate] = []
        if case .certificates(let instead)? = tls.trustRoots {
            text += "roots instead "
            roots += instead
        }
        for case .certificates(let more) in tls.additionalTrustRoots { roots += more }
        for root in roots {
            guard let bytes = try? root.toDERBytes() else { return nil }
            text += "believes \(Data(bytes).base64EncodedString()) "
        }
        return text
    }
}

/// The older form of `pskClientProvider`. It is deprecated, but an app may use it.
private protocol HasKeyCallback {
    var pskClientCallback: NIOPSKClientIdentityCallback? { get }
}

extension TLSConfiguration: HasKeyCallback {}
