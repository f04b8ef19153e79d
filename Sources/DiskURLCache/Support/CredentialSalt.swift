import Foundation

/// Random bytes, one set for each cache directory, that are mixed into the digests of credentials. They make tables of
/// precomputed digests useless for guessing passwords, and keep the digests of two directories from being compared.
///
/// Read when the first credentials are digested.
package final class CredentialSalt: Sendable, Equatable {
    package static let length = 16

    private let state: Mutex<(bytes: [UInt8], isRead: Bool)>
    private let read: @Sendable (_ new: [UInt8]) -> [UInt8]?

    /// - Parameter read: returns the salt that is stored in the directory, after storing the given bytes if there was
    ///   none; nil if the directory cannot be used. Called outside of all locks, perhaps by two threads at once.
    package init(_ read: @escaping @Sendable (_ new: [UInt8]) -> [UInt8]?) {
        self.read = read
        let new = (0..<Self.length).map { _ in UInt8.random(in: 0 ... .max) }
        state = Mutex((bytes: new, isRead: false))
    }

    /// A salt whose bytes have been read already.
    package init(_ bytes: [UInt8]) {
        read = { _ in nil }
        state = Mutex((bytes, true))
    }

    /// Whether the next use reads no file.
    var isRead: Bool { state.withLock { $0.isRead } }

    package var bytes: [UInt8] {
        let known = state.withLock { $0 }
        if known.isRead { return known.bytes }
        // As long as the directory cannot be used, this cache uses random bytes of its own.
        guard let bytes = read(known.bytes) else { return known.bytes }
        state.withLock { $0 = (bytes, true) }
        return bytes
    }

    /// The path leads to a different directory now: its salt is read at the next use. If it has none, this salt is
    /// stored in it.
    func directoryChanged() { state.withLock { $0.isRead = false } }

    package func digest(of text: String) -> KeyDigest {
        (Data(bytes) + Data(text.utf8)).withUnsafeBytes { SHA256Digest.digest(of: $0) }
    }

    package static func == (left: CredentialSalt, right: CredentialSalt) -> Bool {
        left === right || left.bytes == right.bytes
    }
}
