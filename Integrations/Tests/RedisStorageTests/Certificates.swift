import Foundation

/// A certificate for `localhost` by an authority of its own.
struct Certificates {
    static let canBeMade = FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString)")

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("subjectAltName=DNS:localhost\n".utf8).write(to: folder.appendingPathComponent("names"))
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        try run(["req", "-x509", "-subj", "/CN=Test", "-days", "3650", "-keyout", "ca.key", "-out", "ca.pem"] + key)
        try run(["req", "-new", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr"] + key)
        try run([
            "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "1", "-days",
            "3650", "-extfile", "names", "-out", "server.pem",
        ])
    }

    /// Another one by the same authority, as `NAME.pem` and `NAME.key`.
    func add(_ name: String) throws {
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        try run(["req", "-new", "-subj", "/CN=\(name)", "-keyout", "\(name).key", "-out", "\(name).csr"] + key)
        try run([
            "x509", "-req", "-in", "\(name).csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "2", "-days",
            "3650", "-out", "\(name).pem",
        ])
    }

    private func run(_ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        process.arguments = arguments
        process.currentDirectoryURL = folder
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CocoaError(.featureUnsupported) }
    }
}
