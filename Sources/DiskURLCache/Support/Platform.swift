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
    /// A stored response is handed out as the superclass's own object: see `SuperclassCopy`. The one switch for that.
    var answersBySuperclass: Bool
    var lockLifetime: LockLifetime

    static let linux = Platform(
        sessionLoading: .ownLoader, hasProtocols: true, answersBySuperclass: false, lockLifetime: .whileOpen)
    static let macOS = Platform(
        sessionLoading: .system, hasProtocols: true, answersBySuperclass: true, lockLifetime: .whileOpen)
    /// iOS, Mac Catalyst, tvOS and visionOS.
    static let iOS = Platform(
        sessionLoading: .system, hasProtocols: true, answersBySuperclass: true, lockLifetime: .duringPass)
    static let watchOS = Platform(
        sessionLoading: .system, hasProtocols: false, answersBySuperclass: true, lockLifetime: .duringPass)

    static var current: Platform {
        #if os(watchOS)
            .watchOS
        #elseif os(macOS)
            .macOS
        #elseif canImport(Darwin)
            .iOS
        #else
            .linux
        #endif
    }

    /// The loader is registered for sessions that name no classes of their own, and `attach(to:)` puts it into a configuration.
    var attachesLoader: Bool { hasProtocols && sessionLoading == .ownLoader }

    /// A session is made with a class of its own, so that each task's session is known.
    var makesSessionClasses: Bool { hasProtocols && sessionLoading == .system }

    // MARK: The superclass

    /// What the superclass is told of the capacities, in bytes.
    ///
    /// Where the system calls the cache, it may ask the superclass whether a response fits, so that gets room in memory. None on
    /// disk: it would write each response a second time, by rules that are not ours.
    func superclassCapacities(memory: Int, disk: Int) -> (memory: Int, disk: Int) {
        sessionLoading == .system ? (max(memory, min(disk, 64 << 20)), 0) : (0, 0)
    }

    /// Where the superclass, which has no capacity on disk, may think that its folder is.
    static var superclassDiskPath: String {
        #if canImport(Darwin)
            // A folder of its own name: nil would mean the app's default cache, which is not ours to touch.
            return "DiskURLCache.unused"
        #else
            // It creates the folder it is given with mode 0755, so it is given one that exists.
            return "/"
        #endif
    }
}
