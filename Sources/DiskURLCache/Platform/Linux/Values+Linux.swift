#if canImport(FoundationNetworking)
    import Foundation
    import FoundationNetworking

    // What values are on Linux. `Apple/Values+Apple.swift` has the same names for Apple's system.

    extension Platform {
        static var current: Platform { .linux }

        /// The folder given to the superclass, which has no capacity on disk. Foundation would create a missing folder,
        /// with mode 0755; the root exists.
        static let superclassDirectory = URL(fileURLWithPath: "/", isDirectory: true)
    }

    extension Mutex {
        typealias Lock = pthread_mutex_t

        @inline(__always)
        static func initialize(_ lock: UnsafeMutablePointer<Lock>) { pthread_mutex_init(lock, nil) }
        @inline(__always)
        static func destroy(_ lock: UnsafeMutablePointer<Lock>) { pthread_mutex_destroy(lock) }
        @inline(__always)
        static func lock(_ lock: UnsafeMutablePointer<Lock>) { pthread_mutex_lock(lock) }
        @inline(__always)
        static func unlock(_ lock: UnsafeMutablePointer<Lock>) { pthread_mutex_unlock(lock) }
    }

    extension SystemLog {
        static func write(_ text: String) {
            FileHandle.standardError.write(Data("DiskURLCache: \(text)\n".utf8))
        }
    }

    extension SystemFiles {
        static var lockRequest: flock { flock() }
    }

    extension stat {
        var modificationTime: timespec { st_mtim }
    }

    extension FolderPreparation {
        /// There are no protection classes and no backups that would ask.
        static var current: FolderPreparation? { nil }
    }

    extension ExpiringTime {
        /// No process is suspended.
        static let shared = ExpiringTime { handler in DispatchQueue.global(qos: .utility).async { handler(false) } }
    }

    /// A program on Linux is not told about its life.
    struct AppLifeObserver {
        init(relieveMemory: @escaping @Sendable () -> Void, flush: @escaping @Sendable () -> Void) {}
    }

    /// Foundation loses the properties of a request, so options are in `mainDocumentURL`, which it does not use for
    /// loading.
    extension URLRequest {
        /// A quick look, since it is taken at each lookup.
        var mayCarryOptions: Bool { mainDocumentURL != nil }

        private static var prefix: String { "diskurlcache-options:" }

        var carriedOptions: String? {
            get {
                guard let text = mainDocumentURL?.absoluteString, text.hasPrefix(Self.prefix) else { return nil }
                return String(text.dropFirst(Self.prefix.count))
            }
            set {
                if let newValue {
                    mainDocumentURL = URL(string: Self.prefix + newValue)
                } else if carriedOptions != nil {
                    mainDocumentURL = nil
                }
            }
        }
    }
#endif
