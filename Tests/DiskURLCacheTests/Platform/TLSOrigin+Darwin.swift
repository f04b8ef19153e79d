#if canImport(Darwin)
    import CoreFoundation
    import Foundation
    import Network
    import Security
    import Testing

    @testable import DiskURLCache

    /// An origin on the loopback interface with TLS, and a certificate that nobody trusts. It gives each request its
    /// number, fresh for a minute.
    final class TLSOrigin: Sendable {
        let requests = Mutex(0)
        private let listener: NWListener

        init() async throws {
            let options = NWProtocolTLS.Options()
            let identity = sec_identity_create(try Self.identity())
            sec_protocol_options_set_local_identity(options.securityProtocolOptions, try #require(identity))
            let listener = try NWListener(using: NWParameters(tls: options))
            self.listener = listener
            let queue = DispatchQueue(label: "TLSOrigin")
            let requests = requests
            listener.newConnectionHandler = { connection in
                connection.start(queue: queue)
                Self.serve(connection, Data(), requests)
            }
            let states = AsyncStream<NWListener.State> { continuation in
                listener.stateUpdateHandler = { continuation.yield($0) }
            }
            listener.start(queue: queue)
            for await state in states {
                if case .failed(let error) = state { throw error }
                if case .ready = state { break }
            }
        }

        deinit {
            listener.cancel()
        }

        func url(_ path: String) -> URL {
            let port = listener.port?.rawValue ?? 0
            return URL(string: "https://127.0.0.1:\(port)\(path)") ?? URL(fileURLWithPath: path)
        }

        private static func serve(_ connection: NWConnection, _ start: Data, _ requests: Mutex<Int>) {
            connection.receive(minimumIncompleteLength: 1, maximumLength: 65_536) { data, _, isComplete, error in
                var bytes = start + (data ?? Data())
                while let end = bytes.range(of: Data("\r\n\r\n".utf8)) {
                    bytes = Data(bytes[end.upperBound...])
                    let number = requests.next()
                    let text = "\(number)"
                    let head =
                        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: \(text.utf8.count)\r\n\r\n"
                    connection.send(content: Data((head + text).utf8), completion: .contentProcessed { _ in })
                }
                if isComplete || error != nil { return connection.cancel() }
                serve(connection, bytes, requests)
            }
        }

        private static func identity() throws -> SecIdentity {
            var options: [String: Any] = [kSecImportExportPassphrase as String: "test"]
            // Else a Mac puts the key into the user's keychain.
            if #available(macOS 15, iOS 18, tvOS 18, *) { options[kSecImportToMemoryOnly as String] = true }
            var items: CFArray?
            let status = SecPKCS12Import(archive as CFData, options as CFDictionary, &items)
            let first = try #require((items as? [[String: Any]])?.first, "status \(status)")
            return try #require(first[kSecImportItemIdentity as String]) as! SecIdentity
        }

        /// For tests only, by `openssl req -x509` and `openssl pkcs12 -export -macalg sha1 -passout pass:test`.
        private static let archive =
            Data(
                base64Encoded: """
                    MIIDkgIBAzCCA1gGCSqGSIb3DQEHAaCCA0kEggNFMIIDQTCCAjcGCSqGSIb3DQEHBqCCAigwggIkAgEAMIICHQYJKoZIhvcNAQcB
                    MBwGCiqGSIb3DQEMAQMwDgQIRZJzEecr5YwCAggAgIIB8GctBmqxGdA2/MOeXkVtSMT2ARTgBHd1aqNaJWjEOSt3CyzSa85dPNbo
                    0hCc6WhTAewK1QJYianYn4mXlFXL4B085sOfY0FQAfnnS/kGEP7W9ffPQF2oikB9+7koJL8vNtWnnddWazLne4SacOEL3uvEyd7N
                    AD0dg4gHpS6IrbcRGkR/DQAi6YGhSTdjjzodhLsnxH2fHM+lQ2edsEKewQ6Y5wXgqfnqD2Rl9xVjckRunHnMNl9u9a7H2ISxPrcZ
                    KAkUMTa3BjukN5wNu4XexJcRsYjGeLE4GMmP5A6KGUBooqcCSc+Ls6HgAlOJRZBANwM8PSREGNgH3OJM3Kmy+Fk2rTdCvOMgTWSP
                    zKNUSUdhS7mylGg0Fa/fmb9Rp/pz89119rqCmbL+tczx2aaCUC7PFIxr+Abr4h/lHK99t+YENW7KO/MhSSla8pupnGXRCdkPSu7r
                    8VcQo1zahV7IhwfttlHllBiCa2+uaB0wl7UmB2KfTtyA8ubQG8w5wC8RJCm5Z+udKOzpf2Co4q/6fjEwZegmk0CLO2yCDrhhTErV
                    27HaBMOW5Oz6hEyc9g7/LzEOzc+dvQNHqNwa9rOIk61qjDWgTEOIk/sMayd52xqSFnMkQrZj609IDFJUqAEGjNrAba9iEsVKmb0c
                    TZZxSqgwggECBgkqhkiG9w0BBwGggfQEgfEwge4wgesGCyqGSIb3DQEMCgECoIG0MIGxMBwGCiqGSIb3DQEMAQMwDgQIOKCmgLPh
                    g/4CAggABIGQsrzAtnJzUm0koXdm71K8yq4H2N0JvmVb1ayPNDEYoP9ZgxYzt1vicUE+Mhjx52oEud2o0XpfCdc5jOUzRi3WrPMv
                    PPb/gZxTsnKS4zL7BSmu+rPbehlv0PAnFS/808LIyM2YvWamYqM6nEBiqXaQiF5a3TAnB8Gu9udGI9imq9nF9Ty2hnpbGxehANSf
                    Sd+5MSUwIwYJKoZIhvcNAQkVMRYEFGZkptr8JrnstEoF5w1umxDsdz4vMDEwITAJBgUrDgMCGgUABBSXjARoR2uhLDZdafTA3dLI
                    obbhVgQI9iCEm9Dp1p4CAggA
                    """, options: .ignoreUnknownCharacters) ?? Data()
    }
#endif
