import Foundation

/// What the library does differently on one platform than on another. A value, so that the choices for every platform are
/// tested on each; only ``current`` asks where the program runs.
struct Platform: Sendable, Equatable {
    /// Who judges what a session's cache holds, and fills it.
    enum SessionLoading: Sendable {
        /// The system's own loader calls the cache's methods, as `URLCache` documents: freshness, validation, trust, cookies and
        /// streaming are its affair. Our loader serves only sessions that were made for it.
        case system
        /// The system's own loader stores nothing: ours has to stand in front of it.
        case ownLoader
    }

    /// When the directory's lock is held.
    enum LockLifetime: Sendable {
        case whileOpen
        /// Only while a maintenance pass runs, inside an activity that the system granted: an app that is suspended with a lock
        /// on a file of a shared container is killed (0xdead10cc).
        case duringPass
    }

    var sessionLoading: SessionLoading
    /// Whether apps can define protocol classes; false on watchOS.
    var hasProtocols: Bool
    /// Bytes that the superclass may hold in memory; 0 where it is left out: see `SuperclassCopy`.
    var superclassLimit: Int
    var lockLifetime: LockLifetime

    static let linux = Platform(
        sessionLoading: .ownLoader, hasProtocols: true, superclassLimit: 0, lockLifetime: .whileOpen)
    static let macOS = Platform(
        sessionLoading: .system, hasProtocols: true, superclassLimit: .max, lockLifetime: .whileOpen)
    /// iOS, Mac Catalyst, tvOS and visionOS.
    static let iOS = Platform(
        sessionLoading: .system, hasProtocols: true, superclassLimit: .max, lockLifetime: .duringPass)
    static let watchOS = Platform(
        sessionLoading: .system, hasProtocols: false, superclassLimit: 8 << 20, lockLifetime: .duringPass)
    /// An extension of an app on iOS and its like: the system grants it little memory.
    static let appExtension = Platform(
        sessionLoading: .system, hasProtocols: true, superclassLimit: 8 << 20, lockLifetime: .duringPass)

    static var current: Platform {
        #if os(watchOS)
            .watchOS
        #elseif os(macOS)
            .macOS
        #elseif canImport(Darwin)
            Bundle.main.bundleURL.pathExtension == "appex" ? .appExtension : .iOS
        #else
            .linux
        #endif
    }

    /// The loader is registered for sessions that name no classes of their own, and `attach(to:)` puts it into a configuration.
    var attachesLoader: Bool { hasProtocols && sessionLoading == .ownLoader }

    /// A session is made with a class of its own, so that each task's session is known.
    var makesSessionClasses: Bool { hasProtocols && sessionLoading == .system }

    // MARK: The superclass

    /// Bytes that the superclass is told it may hold in memory. On disk it gets none: it would write each response a second time, by
    /// rules that are not the cache's.
    func superclassCapacity(memory: Int) -> Int { min(memory, superclassLimit) }

    /// Whether the superclass keeps a body for a moment: not an empty one, and none above a twentieth of its capacity (`URLCache`).
    func superclassKeeps(bytes: Int, memory: Int) -> Bool {
        bytes > 0 && bytes <= superclassCapacity(memory: memory) / 20
    }

    /// Where the superclass, which has no capacity on disk, may think that its folder is: nil would mean the app's default cache.
    static let superclassDirectory: URL = {
        #if canImport(Darwin)
            FileManager.default.temporaryDirectory.appendingPathComponent("DiskURLCache.unused", isDirectory: true)
        #else
            // It creates the folder it is given with mode 0755, so it is given one that exists.
            URL(fileURLWithPath: "/", isDirectory: true)
        #endif
    }()
}
