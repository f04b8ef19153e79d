#if canImport(Darwin)
    import Foundation

    // Never run by the project's tests: written from Apple's documentation.

    /// Observes the notifications of an app's life for one cache. Names are spelt out so that neither UIKit nor AppKit
    /// is linked, and app extensions can use the library.
    final class AppLifeObserver: @unchecked Sendable {
        // @unchecked: the tokens are set once, in `init`, and read in `deinit`.
        private var tokens: [any NSObjectProtocol] = []
        private let pressure: any DispatchSourceMemoryPressure

        init(_ cache: DiskURLCache) {
            pressure = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global())
            pressure.setEventHandler { [weak cache] in cache?.relieveMemoryPressure() }
            pressure.activate()
            observe("UIApplicationDidReceiveMemoryWarningNotification", cache) { $0.relieveMemoryPressure() }
            observe("UIApplicationDidEnterBackgroundNotification", cache) { cache in
                // Asks for the time that writing takes; without it the app may be suspended first.
                #if os(macOS)
                    cache.suspendMaintenance()
                #else
                    ProcessInfo.processInfo.performExpiringActivity(withReason: "DiskURLCache") { isExpired in
                        if !isExpired { cache.suspendMaintenance() }
                    }
                #endif
            }
            observe("UIApplicationWillEnterForegroundNotification", cache) { $0.resumeMaintenance() }
            observe("UIApplicationWillTerminateNotification", cache) { $0.flush() }
            observe("NSApplicationWillTerminateNotification", cache) { $0.flush() }
        }

        deinit {
            pressure.cancel()
            for token in tokens { NotificationCenter.default.removeObserver(token) }
        }

        private func observe(
            _ name: String, _ cache: DiskURLCache, _ action: @escaping @Sendable (DiskURLCache) -> Void
        ) {
            tokens.append(
                NotificationCenter.default.addObserver(
                    forName: Notification.Name(name), object: nil, queue: nil
                ) { [weak cache] _ in
                    if let cache { action(cache) }
                })
        }
    }
#endif
