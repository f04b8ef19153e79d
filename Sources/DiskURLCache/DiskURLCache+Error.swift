import Foundation

extension DiskURLCache {
    /// Something the app or its user can act on. A cache keeps working without its disk layer.
    public struct Error: Swift.Error, Sendable, CustomStringConvertible {
        public enum Code: Sendable, Hashable {
            /// The directory URL is not a file URL.
            case notAFileURL
            /// The directory, or a folder inside it, cannot be made.
            case directoryUnavailable
            /// A file, a symbolic link or a foreign object stands where a folder of the cache should be. It is left
            /// untouched.
            case obstructed
            /// The directory exists but cannot be written.
            case notWritable
            /// Reading or writing failed.
            case io
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
            case .io: "Reading or writing \(path) failed\(cause)."
            }
        }
    }
}
