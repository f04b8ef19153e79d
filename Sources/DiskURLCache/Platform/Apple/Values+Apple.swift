#if canImport(Darwin)
    import Foundation
    import os

    // Never run by the project's tests: written from Apple's documentation. What values are by Apple's system;
    // `Linux/Values+Linux.swift` has the same names for Linux.

    extension Platform {
        static var current: Platform {
            #if os(watchOS)
                .watchOS
            #elseif os(macOS)
                .macOS
            #else
                Bundle.main.bundleURL.pathExtension == "appex" ? .appExtension : .iOS
            #endif
        }

        /// The folder given to the superclass, which has no capacity on disk. Nil would mean the app's default cache.
        static let superclassDirectory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "DiskURLCache.unused", isDirectory: true)
    }

    extension Mutex {
        typealias Lock = os_unfair_lock

        static func initialize(_ lock: UnsafeMutablePointer<Lock>) {}
        static func destroy(_ lock: UnsafeMutablePointer<Lock>) {}
        static func lock(_ lock: UnsafeMutablePointer<Lock>) { os_unfair_lock_lock(lock) }
        static func unlock(_ lock: UnsafeMutablePointer<Lock>) { os_unfair_lock_unlock(lock) }
    }

    extension SystemLog {
        static func write(_ text: String) {
            Logger(subsystem: "DiskURLCache", category: "DiskURLCache").error("\(text, privacy: .public)")
        }
    }

    extension CheckTime {
        /// A time that threads read and move. Atomics need iOS 18 and macOS 15.
        struct SharedTime: ~Copyable, Sendable {
            private let time = Mutex<UInt64>(0, isContended: true)

            /// Moves it to a later time, if it was reached; true for the one thread that did so.
            func moves(to later: UInt64, ifReachedAt now: UInt64) -> Bool {
                time.withLock { time in
                    guard now >= time else { return false }
                    time = later
                    return true
                }
            }

            func isReached(at now: UInt64) -> Bool { time.withLock { now >= $0 } }

            func set(_ new: UInt64) { time.withLock { $0 = new } }
        }
    }

    extension stat {
        var modificationTime: timespec { st_mtimespec }
    }

    extension ExpiringTime {
        static let shared = ExpiringTime { handler in
            // A Mac suspends no process, and lacks the function.
            #if os(macOS)
                DispatchQueue.global(qos: .utility).async { handler(false) }
            #else
                ProcessInfo.processInfo.performExpiringActivity(withReason: "DiskURLCache", using: handler)
            #endif
        }
    }

    extension CachedURLResponse {
        /// Complete, since the system may read an object without calling the accessors of a Swift subclass.
        static func make(
            head: EntryMetadata.Response, url text: String?, requestedURL: URL, data: Data,
            later body: (@Sendable () -> Data)? = nil, userInfo: [AnyHashable: Any]?,
            storagePolicy: URLCache.StoragePolicy
        ) -> CachedURLResponse {
            let url = text.flatMap { URL(string: $0) } ?? requestedURL
            return CachedURLResponse(
                response: head.urlResponse(url: url), data: body?() ?? data, userInfo: userInfo,
                storagePolicy: storagePolicy)
        }
    }

    extension Trace {
        typealias Span = OSSignpostIntervalState?

        private static let logger = Logger(subsystem: "DiskURLCache", category: "Loads")
        private static let signposter = OSSignposter(logger: logger)

        /// Nil, and so nothing to pay, if no instrument records.
        static func begin(_ name: StaticString) -> Span {
            guard signposter.isEnabled else { return nil }
            return signposter.beginInterval(name, id: signposter.makeSignpostID())
        }

        static func end(_ name: StaticString, _ span: Span, _ outcome: @autoclosure @escaping () -> String) {
            if let span { signposter.endInterval(name, span, "\(outcome(), privacy: .public)") }
            logger.debug("\(name, privacy: .public): \(outcome(), privacy: .public)")
        }
    }

    /// Options are a `URLProtocol` property of the request.
    extension URLRequest {
        var mayCarryOptions: Bool { carriedOptions != nil }

        private static var propertyName: String { "DiskURLCache.options" }

        var carriedOptions: String? {
            get { URLProtocol.property(forKey: Self.propertyName, in: self) as? String }
            set {
                guard let request = (self as NSURLRequest).mutableCopy() as? NSMutableURLRequest else { return }
                URLProtocol.removeProperty(forKey: Self.propertyName, in: request)
                if let newValue { URLProtocol.setProperty(newValue, forKey: Self.propertyName, in: request) }
                self = request as URLRequest
            }
        }
    }
#endif
