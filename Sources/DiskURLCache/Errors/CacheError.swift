import Foundation

// Every error of this library. Loads fail with the errors that `URLSession` has; see `CacheLoadReport.error`.

/// Why a folder cannot be used as a cache, or something else that the app or its user can act on; `description` says how.
///
/// A ``DiskURLCache`` throws none of these: it works on, perhaps in memory only, and tells of them in
/// ``DiskURLCache/DiskURLCache/openingError`` and ``CacheEvent/problem(_:)``. A ``CacheInspector`` throws them.
public struct CacheError: Swift.Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong. The raw value is the spelling in the event log.
    public enum Code: String, Sendable, Hashable {
        /// The URL of the folder is not a file URL.
        case notAFileURL
        /// The folder, or a folder inside it, cannot be made.
        case directoryUnavailable
        /// There is nothing at the path.
        case notFound
        /// A file or a symbolic link is where a folder should be. It is left untouched.
        case obstructed
        /// A folder, but not one that a ``DiskURLCache`` made.
        case notACache
        /// No permission to read the folder.
        case notReadable
        /// No permission to write to the folder, or a file system that is read-only.
        case notWritable
        /// Reading or writing a file failed.
        case io
        /// Another process maintains the index of the folder.
        case inUse
        /// A session has the cache as its `urlCache`, but not the loader, so nothing is cached for it. Sent once, on Linux only.
        case loaderMissing
    }

    /// What is wrong.
    public let code: Code
    /// The file or folder concerned; empty where there is none.
    public let path: String
    /// The system's error number, 0 where there is none. `description` has it in words.
    let errno: Int32

    init(_ code: Code, path: String, errno: Int32 = 0) {
        self.code = code
        self.path = path
        self.errno = errno
    }

    /// What is wrong and what can be done, in a sentence or two, with the system's reason.
    public var description: String {
        let cause = errno == 0 ? "" : ": \(String(cString: strerror(errno)))"
        return switch code {
        case .notAFileURL: "\(path) is not a file URL. Name a folder on this machine."
        case .directoryUnavailable: "The folder \(path) cannot be made\(cause). Choose a folder that can."
        case .notFound: "There is nothing at \(path)."
        case .obstructed: "\(path) is not a folder\(cause). A cache needs one there: move what is there away."
        case .notACache: "\(path) is not a cache: it has no folder \"records\"."
        case .notReadable: "\(path) cannot be read\(cause)."
        case .notWritable: "\(path) cannot be written\(cause)."
        case .io: path.isEmpty ? "A file operation failed\(cause)." : "Reading or writing \(path) failed\(cause)."
        case .inUse: "\(path) is in use: the process that has it open keeps its index."
        case .loaderMissing:
            "A session has this cache as its urlCache, but nothing is cached for it: make it from a configuration that"
                + " attach(to:) was called with."
        }
    }
}

/// Why rules are refused. Thrown by ``DiskURLCache/DiskURLCache/Configuration/setRules(_:)``.
public struct CacheRuleError: Swift.Error, Sendable, Hashable, CustomStringConvertible {
    /// Position of the rule in the list, counted from 0.
    public let index: Int
    /// What is wrong with the rule, and what to do.
    public let description: String
}
