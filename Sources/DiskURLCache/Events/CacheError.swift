import Foundation

/// A problem that the app or its user can act on; `description` says how. The cache works on, perhaps in memory only.
public struct CacheError: Swift.Error, Sendable, CustomStringConvertible {
    public enum Code: Sendable, Hashable {
        /// The directory URL is not a file URL.
        case notAFileURL
        /// The directory, or a folder inside it, cannot be made.
        case directoryUnavailable
        /// A file or a symbolic link is where a folder of the cache should be. The cache leaves it untouched.
        case obstructed
        /// The directory exists but cannot be written.
        case notWritable
        /// Reading or writing failed.
        case io
        /// A session has the cache as its `urlCache`, but not the loader, so nothing is cached for it. Sent once, on Linux only.
        case loaderMissing
    }

    public let code: Code
    /// The file or folder concerned.
    public let path: String
    /// The system's error number, 0 where there is none.
    public let errno: Int32

    init(_ code: Code, path: String, errno: Int32 = 0) {
        self.code = code
        self.path = path
        self.errno = errno
    }

    public var description: String {
        let cause = errno == 0 ? "" : " (\(String(cString: strerror(errno))))"
        return switch code {
        case .notAFileURL: "\(path) is not a file URL: pass a folder on this machine. Caching in memory only."
        case .directoryUnavailable:
            "The cache folder \(path) cannot be made\(cause): choose a folder that can. Caching in memory only."
        case .obstructed:
            "\(path) is in the way of the cache's folder\(cause): move it away. Caching in memory only."
        case .notWritable: "\(path) cannot be written\(cause): stored entries stay in memory."
        case .loaderMissing:
            "A session has this cache as its urlCache, but nothing is cached for it: make it from a configuration that"
                + " attach(to:) was called with."
        case .io: "Reading or writing \(path) failed\(cause)."
        }
    }
}
