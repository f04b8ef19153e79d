import Foundation

/// Random bytes of a cache's directory that are mixed into the digests of credentials: a table of digests made in
/// advance confirms no guess of a password, and the digests of two directories cannot be compared.
///
/// Read when the first credentials are digested.
package final class CredentialSalt: Sendable, Equatable {
    package static let length = 16

    private let state: Mutex<(bytes: [UInt8], isRead: Bool)>
    private let read: @Sendable (_ new: [UInt8]) -> [UInt8]?

    /// - Parameter read: the bytes of the directory, which are the given ones if it has none; nil if the directory
    ///   cannot be used. Called outside of all locks, and maybe twice at once.
    package init(_ read: @escaping @Sendable (_ new: [UInt8]) -> [UInt8]?) {
        self.read = read
        state = Mutex(((0..<Self.length).map { _ in .random(in: 0 ... .max) }, false))
    }

    /// The bytes as they were read.
    package init(_ bytes: [UInt8]) {
        read = { _ in nil }
        state = Mutex((bytes, true))
    }

    package var bytes: [UInt8] {
        let known = state.withLock { $0 }
        if known.isRead { return known.bytes }
        // Until the directory can be used, random bytes of this cache count.
        guard let bytes = read(known.bytes) else { return known.bytes }
        state.withLock { $0 = (bytes, true) }
        return bytes
    }

    /// The directory is another one: its salt is read again, and is this one if it has none.
    func directoryChanged() { state.withLock { $0.isRead = false } }

    package func digest(of text: String) -> KeyDigest {
        (Data(bytes) + Data(text.utf8)).withUnsafeBytes { SHA256Digest.digest(of: $0) }
    }

    package static func == (left: CredentialSalt, right: CredentialSalt) -> Bool {
        left === right || left.bytes == right.bytes
    }
}
