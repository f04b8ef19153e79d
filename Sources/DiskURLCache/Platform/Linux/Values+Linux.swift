#if canImport(FoundationNetworking)
    import Foundation
    import Synchronization

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
        static func lock(_ lock: UnsafeMutablePointer<Lock>) {
            #if DEBUG
                if let turn = ThreadTurn.ofThread {
                    repeat { turn.wait() } while pthread_mutex_trylock(lock) != 0
                    return
                }
            #endif
            pthread_mutex_lock(lock)
        }
        @inline(__always)
        static func unlock(_ lock: UnsafeMutablePointer<Lock>) { pthread_mutex_unlock(lock) }
    }

    extension SystemLog {
        static func write(_ text: String) {
            // The other `write` ends the process if that fails.
            try? FileHandle.standardError.write(contentsOf: Data("DiskURLCache: \(text)\n".utf8))
        }
    }

    extension CheckTime {
        /// A time that threads read and move without a lock.
        struct SharedTime: ~Copyable, Sendable {
            private let time = Atomic<UInt64>(0)

            /// Moves it to a later time, if it was reached; true for the one thread that did so.
            @inline(__always)
            func moves(to later: UInt64, ifReachedAt now: UInt64) -> Bool {
                let reached = time.load(ordering: .relaxed)
                guard now >= reached else { return false }
                return time.compareExchange(expected: reached, desired: later, ordering: .acquiringAndReleasing)
                    .exchanged
            }

            @inline(__always)
            func isReached(at now: UInt64) -> Bool { now >= time.load(ordering: .relaxed) }

            func set(_ new: UInt64) { time.store(new, ordering: .releasing) }
        }
    }

    extension stat {
        var modificationTime: timespec { st_mtim }
    }

    extension ExpiringTime {
        /// No process is suspended.
        static let shared = ExpiringTime { handler in DispatchQueue.global(qos: .utility).async { handler(false) } }
    }

    extension CachedURLResponse {
        /// See `LazyCachedURLResponse`.
        static func make(
            head: EntryMetadata.Response, url text: String?, requestedURL: URL, data: Data,
            later body: (@Sendable () -> Data)? = nil, userInfo: [AnyHashable: Any]?,
            storagePolicy: URLCache.StoragePolicy
        ) -> CachedURLResponse {
            LazyCachedURLResponse(
                head: head, url: text, requestedURL: requestedURL, data: data, later: body, userInfo: userInfo,
                storagePolicy: storagePolicy)
        }
    }

    extension Trace {
        typealias Span = Void

        @inline(__always)
        static func begin(_ name: StaticString) {}
        @inline(__always)
        static func end(_ name: StaticString, _ span: Span, _ outcome: @autoclosure () -> String) {}
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
