import Foundation

/// The differences between platforms in this library. A value, so that the choices for every platform are
/// tested on each; only ``current`` depends on the system that the program runs on.
struct Platform: Sendable, Equatable {
    /// The system's loader calls the cache's methods, as `URLCache` documents: it handles freshness, validation, trust,
    /// cookies and streaming. The library's loader serves only sessions that were made for it. False on Linux: the
    /// system's loader stores nothing there, so the library's loader comes before it.
    var loadsBySystem = true
    /// Whether apps can define protocol classes; false on watchOS.
    var hasProtocols = true
    /// Bytes that the superclass may hold in memory; 0 if it is not used: see `SuperclassCopy`.
    var superclassLimit = Int.max
    /// `Vary` has another name in what the system's loader gets, until the loader refuses that: see `SystemHead` and
    /// `SystemHits`. A Mac can try both (`.ci/mac`).
    var hidesVary = true
    /// The directory's lock is held only while a maintenance pass runs, inside an activity that the system granted: the
    /// system kills a suspended app that holds a lock on a file of a shared container (0xdead10cc). False: the lock is
    /// held while the cache is open.
    var locksOnlyInPasses = true
    /// Whether the system tells an app by notifications that memory runs short, and where the app is in its life. False
    /// on Linux.
    var hasAppLife = true

    static let linux = Platform(
        loadsBySystem: false, superclassLimit: 0, locksOnlyInPasses: false, hasAppLife: false)
    static let macOS = Platform(locksOnlyInPasses: false)
    /// iOS, Mac Catalyst, tvOS and visionOS.
    static let iOS = Platform()
    static let watchOS = Platform(hasProtocols: false, superclassLimit: 8 << 20)
    /// An extension of an app on iOS and its like: the system grants it little memory.
    static let appExtension = Platform(superclassLimit: 8 << 20)

    /// Whether the loader is registered for sessions that do not list protocol classes, and `attach(to:)` adds it to a
    /// configuration.
    var attachesLoader: Bool { !loadsBySystem }

    /// Whether each session is made with a protocol class of its own, by which the loader knows the session of a task.
    var makesSessionClasses: Bool { hasProtocols && loadsBySystem }

    // MARK: The superclass

    /// Bytes of memory that the superclass may use. On disk it may use none: it would write each response a second
    /// time, by its own rules.
    func superclassCapacity(memory: Int) -> Int { min(memory, superclassLimit) }

    /// Whether the superclass keeps a body for a moment: `URLCache` refuses empty ones, and those above a twentieth of
    /// its capacity.
    func superclassKeeps(bytes: Int, memory: Int) -> Bool {
        bytes > 0 && bytes <= superclassCapacity(memory: memory) / 20
    }
}
