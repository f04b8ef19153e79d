import AsyncHTTPClient
import Crypto
import Foundation
import NIOSSL

/// What a client's configuration says about its answers. A server may know the client by its certificate or address, a
/// proxy by what it is shown; which server the client believes depends on its root certificates and host names, and
/// which one answers on its proxy and its names of hosts. A request shows none of that.
enum TLSIdentity: Equatable, Sendable {
    /// The server is verified with the system's root certificates, and the client has no certificate.
    case anonymous
    /// The answers are stored under this name, apart from all others.
    case named(String)
    /// A callback decides, or a file that may change, so that the answers must not be stored.
    case unknown

    /// - Parameter configuration: if the root certificates are in a file, they are replaced by the file's present
    ///   content: after a later change of the file, answers would belong under a different name.
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
        // It decides which server answers, too, and may answer itself.
        if let proxy = configuration.proxy { text += "through \(proxy.host):\(proxy.port) \(proxy.shown)" }
        if let address = configuration.localAddress { text += "from \(address) " }
        self = text.isEmpty ? .anonymous : .named(SHA256.hash(of: text))
    }

    /// The same configuration with the content of the file of root certificates instead of its path; nil if there is no
    /// such file.
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

    /// A text that is different for configurations that get different answers; nil if it cannot be known.
    private static func text(for tls: TLSConfiguration) -> String? {
        guard (tls as any HasKeyCallback).pskClientCallback == nil, tls.pskClientProvider == nil,
            tls.sslContextCallback == nil
        else { return nil }
        var text = ""
        // Without verification anybody on the way can forge the answer, so it must not be given to a client that
        // verifies the server.
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

/// The deprecated predecessor of `pskClientProvider`, which an app may still use.
private protocol HasKeyCallback {
    var pskClientCallback: NIOPSKClientIdentityCallback? { get }
}

extension TLSConfiguration: HasKeyCallback {}

extension HTTPClient.Configuration.Proxy {
    /// A digest of the credentials and fields that only the proxy is shown; empty if there are none.
    fileprivate var shown: String {
        let credentials = authorization.map { [("proxy-authorization", $0.headerValue)] } ?? []
        let fields = credentials + connectHeaders.map { ($0.name.lowercased(), $0.value) }
        if fields.isEmpty { return "" }
        return "as " + SHA256.hash(of: fields.map { "\($0): \($1)\n" }.joined()) + " "
    }
}

extension SHA256 {
    /// In hexadecimal digits.
    fileprivate static func hash(of text: String) -> String {
        hash(data: Data(text.utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
