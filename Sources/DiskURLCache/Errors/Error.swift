import Foundation

// Every error of this library. Loads fail with the errors that `URLSession` has; see `DiskURLCache.Report.error`.

extension DiskURLCache {
    /// Why a folder or a file cannot be used, why rules are refused, or another problem that the app or its user can
    /// solve; `description` says how.
    ///
    /// A ``DiskURLCache`` throws none of these: it continues, perhaps in memory only, and reports them in
    /// ``DiskURLCache/DiskURLCache/openingError`` and ``Event/problem(_:)``. A `DiskURLCache.Inspector` throws them.
    public struct Error: Swift.Error, Sendable, Hashable, Codable, CustomStringConvertible {
        /// The kind of problem.
        public enum Code: Sendable, Hashable, Codable {
            /// The URL of the folder is not a file URL.
            case notAFileURL
            /// A file or a symbolic link has the place of the folder. It is left untouched.
            case obstructed
            /// There is nothing at the path, or a folder that no ``DiskURLCache`` made.
            case notACache
            /// No permission to read the folder or the file.
            case notReadable
            /// The folder belongs to another user, who could forge responses in it. It is left alone.
            case otherOwner
            /// Other users may put files into the folder. It is left alone.
            case writableByOthers
            /// The folder cannot be made or written: no permission, or a file system that is read-only.
            case notWritable
            /// Reading or writing a file failed.
            case io
            /// A record whose bytes are not those that were written. A cache removes such a record when it reads it.
            case damaged
            /// A file under a record's name that is not this record: not a regular file, of another version, or moved
            /// here. A cache leaves it alone.
            case foreign
            /// A process has the folder open and maintains its index.
            case inUse
            /// A rule that matches nothing, does nothing, contradicts itself or an earlier rule, or names an unknown
            /// key policy. `index` is its position in the list, counted from 0.
            case invalidRule(index: Int)
            /// A URL prefix or a host that no stored response can have: a removal removed nothing.
            case invalidPattern
            /// Settings that have no effect; `description` names them. A second cache of this process has the folder
            /// open with other settings, which hold for both caches, or the system's loader, which obeys none of them,
            /// uses the cache. Sent once.
            case settingsWithoutEffect
            /// The storage keeps entries of several users (`DiskURLCache.EntryStorage.isForSeveralUsers`), and the
            /// cache is private. It works in memory.
            case sharedStorage
            /// A session on Linux has the cache as its `urlCache`, but not the loader of this library: nothing is
            /// cached for it. Sent once, and logged.
            case loaderMissing
        }

        /// The kind of problem.
        public let code: Code
        /// The file or folder concerned, or the URL of a load (``Code/loaderMissing``), without its query; empty when
        /// there is none.
        public let path: String
        /// The user that the folder belongs to, for ``Code/otherOwner``; nil for every other code.
        let userID: UInt32?
        /// The system's error number, 0 when there is none. `description` has its text.
        let errno: Int32
        /// For a rule or a pattern: its fault and the remedy. For settings: their names. Empty for every other code.
        private let details: String

        package init(_ code: Code, path: String = "", errno: Int32 = 0, userID: UInt32? = nil, details: String = "") {
            (self.code, self.path, self.errno, self.userID, self.details) = (code, path, errno, userID, details)
        }

        /// The problem without the load that revealed it: a problem is reported once.
        var occasion: DiskURLCache.Error { code == .loaderMissing ? DiskURLCache.Error(code) : self }

        /// The problem and the remedy, in a sentence or two, with the system's reason.
        public var description: String {
            let cause = errno == 0 ? "" : ": \(String(cString: strerror(errno)))"
            return switch code {
            case .notAFileURL: "\(path) is not a file URL. Name a folder on this machine."
            case .obstructed: "\(path) is not a folder\(cause). A cache needs one there: move the file or link away."
            case .notACache:
                errno == ENOENT
                    ? "There is nothing at \(path). Name the folder of a cache that was opened once."
                    : "\(path) is not a cache: it has no folder \"records\". Name the folder that DiskURLCache was given."
            case .notReadable: "\(path) cannot be read\(cause). Give the user of the process the right to read it."
            case .notWritable:
                "\(path) cannot be written\(cause). Name another folder, or give the user of the process the right to"
                    + " write it."
            case .otherOwner:
                "\(path) belongs to \(userID.map { "user \($0)" } ?? "another user"), not to user \(geteuid()) of this process. Name another"
                    + " folder, or give this one to the user of the process: chown -R."
            case .writableByOthers:
                "Other users may put files into \(path). Name another folder, or take that right from them: chmod go-w."
            case .io:
                (path.isEmpty ? "A file operation failed\(cause)." : "Reading or writing \(path) failed\(cause).")
                    + " Look at the disk: its space, its mount, its log."
            case .damaged:
                (path.isEmpty ? "A file of the cache" : path)
                    + " is damaged: its bytes are not those that were written."
                    + " A cache removes it. If that happens often, look at the disk."
            case .foreign:
                "\(path) is no record of this cache: not a file, of another version, or moved here. Move it away."
            case .invalidRule(let index): "Rule \(index): \(details)"
            case .invalidPattern:
                "Nothing was removed: "
                    + (details.isEmpty ? "no URL matches. Give a host, or the beginning of a URL." : details)
            case .settingsWithoutEffect where path.isEmpty:
                "Without effect, since the system's own loader uses this cache: \(details). Use data(for:) or, except on watchOS,"
                    + " a session of makeSession."
            case .settingsWithoutEffect:
                "\(path) is open in this process with other settings, which hold for both caches: \(details)."
                    + " Use that cache, or another folder."
            case .sharedStorage:
                "The storage keeps entries of several users, and this cache is for one user. Set `isShared` to true."
            case .inUse: "\(path) is in use: the process that has it open keeps its index. End that process first."
            case .loaderMissing:
                "A session has this cache as its urlCache, but nothing is cached for it"
                    + "\(path.isEmpty ? "" : ", such as \(path)"): make it from a configuration that attach(to:) was called with."
            }
        }
    }
}
