import Foundation

// Every error of this library. Loads fail with the errors that `URLSession` has; see `DiskURLCache.Report.error`.

extension DiskURLCache {
    /// A problem that the app or its user can solve, such as a folder that cannot be used or a rule that makes no
    /// sense. `description` says how.
    ///
    /// A ``DiskURLCache`` reports these in ``DiskURLCache/DiskURLCache/openingError`` and ``Event/problem(_:)``, and
    /// goes on, perhaps in memory only. Only `makeSession(through:)` throws one (``Code/settingsWithoutEffect``). A
    /// `DiskURLCache.Inspector` throws them, too.
    public struct Error: Swift.Error, Sendable, Hashable, Codable, PrintedByDescription {
        /// The kind of problem.
        @nonexhaustive public enum Code: Sendable, Hashable, Codable {
            /// The URL of the folder is not a file URL.
            case notAFileURL
            /// There is a file or a symbolic link at the path of the folder. It is not touched.
            case obstructed
            /// There is nothing at the path, or a folder that was not made by a ``DiskURLCache``.
            case notACache
            /// No permission to read the folder or the file.
            case notReadable
            /// The folder belongs to another user, who could forge responses in it. It is not touched.
            case otherOwner
            /// Other users may put files into the folder. It is not touched.
            case writableByOthers
            /// The folder cannot be made or written: there is no permission, or the file system is read-only.
            case notWritable
            /// Reading or writing a file failed.
            case io
            /// The bytes of a record are not those that were written. A cache removes such a record when it reads it.
            case damaged
            /// A file with the name of a record is not that record: it is not a regular file, has a different version
            /// of the format, or was moved here. A cache does not touch it.
            case foreign
            /// A process that has the folder open owns its index.
            case inUse
            /// A rule that matches nothing, does nothing, contradicts itself or an earlier rule, or names an unknown
            /// key policy. `index` is its position in the list, counted from 0.
            case invalidRule(index: Int)
            /// Conditions that no stored response can meet, such as text that is no URL prefix, or none at all:
            /// nothing was removed, or marked.
            case invalidPattern
            /// Settings have no effect; `description` names them. Either a cache of this process that was made earlier
            /// has the folder open with different settings, which apply to both caches; or no response fits into a
            /// capacity, which is in bytes; or the cache is used by the system's loader, which ignores these settings
            /// (all sent once); or a session was to be made of a configuration that its transport cannot follow
            /// (thrown).
            case settingsWithoutEffect
            /// The storage is for several users (`DiskURLCache.EntryStorage.isForSeveralUsers`), but the cache is
            /// private. The cache works in memory only.
            case sharedStorage
            /// A key policy lets the app name the user, or leaves `Authorization` out, but the cache is shared.
            /// `Authorization` stays part of every key.
            case sharedKeyPolicy
            /// On Linux, a session has the cache as its `urlCache` but not the loader of this library, so that nothing
            /// is cached for it. Sent once, and logged.
            case loaderMissing
            /// On Apple platforms, the system's own loader refuses fresh responses that it gets from the cache.
            /// `description` says what the cache has changed about it. Sent once, and logged.
            case refusedBySystem
        }

        /// The kind of problem.
        public let code: Code
        /// The path of the file or folder, or the URL of a load without its query (``Code/loaderMissing``); empty if
        /// there is none.
        public let path: String
        /// The user that the folder belongs to, for ``Code/otherOwner``; nil for every other code.
        let userID: UInt32?
        /// The system's error number, 0 when there is none. `description` has its text.
        let errno: Int32
        /// For a rule or a pattern: what is wrong, and how to mend it. For settings: their names. Empty for every other
        /// code.
        private let details: String

        package init(_ code: Code, path: String = "", errno: Int32 = 0, userID: UInt32? = nil, details: String = "") {
            self.code = code
            self.path = path
            self.errno = errno
            self.userID = userID
            self.details = details
        }

        /// The problem without the load that revealed it, so that it is reported once and not for each load.
        var occasion: DiskURLCache.Error { code == .loaderMissing ? DiskURLCache.Error(code) : self }

        /// What is wrong and how to mend it, in a sentence or two, with the system's reason.
        package var printedText: String {
            let cause = errno == 0 ? "" : ": \(String(cString: strerror(errno)))"
            return switch code {
            case .notAFileURL: "\(path) is not a file URL. Name a folder on this machine."
            case .obstructed: "\(path) is not a folder\(cause). A cache needs one there: move the file or link away."
            case .notACache:
                errno == ENOENT
                    ? "There is nothing at \(path). Name the folder of a cache that was opened once."
                    : "\(path) is not a cache: it has no folder \"records\". Name the folder that DiskURLCache was given."
            case .notReadable:
                "\(path) cannot be read\(cause). Name another folder, or give the user of the process the right to read it."
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
            case .refusedBySystem:
                details + " Use data(for:) or, except on watchOS, a session of makeSession: they use what is stored."
            case .settingsWithoutEffect where path.isEmpty:
                details
            case .settingsWithoutEffect:
                "\(path) is open in this process with other settings, which hold for both caches: \(details)."
                    + " Use that cache, or another folder."
            case .sharedStorage:
                "The storage keeps entries of several users, and this cache is for one user. Set `isShared` to true."
            case .sharedKeyPolicy:
                "A key policy says who the user is, or that it makes no difference, but the cache is shared: Authorization"
                    + " stays part of every key. Use identifyingUser and ignoringAuthorization in a cache for one user."
            case .inUse: "\(path) is in use: the process that has it open keeps its index. End that process first."
            case .loaderMissing:
                "A session has this cache as its urlCache, but nothing is cached for it"
                    + "\(path.isEmpty ? "" : ", such as \(path)"): make it by cache.makeSession(), or from a"
                    + " configuration that attach(to:) was called with."
            }
        }
    }
}
