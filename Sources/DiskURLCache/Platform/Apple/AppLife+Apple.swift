#if canImport(Darwin)
    import Foundation

    // Never run by the project's tests: written from Apple's documentation.

    /// Observes the notifications of an app's life for one cache. Names are spelt out so that neither UIKit nor AppKit
    /// is linked, and app extensions can use the library.
    final class AppLifeObserver: @unchecked Sendable {
        // @unchecked: the tokens are set once, in `init`, and read in `deinit`.
        private var tokens: [any NSObjectProtocol] = []
        private let pressure: any DispatchSourceMemoryPressure

        init(relieveMemory: @escaping @Sendable () -> Void, flush: @escaping @Sendable () -> Void) {
            pressure = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global())
            pressure.setEventHandler(handler: relieveMemory)
            pressure.activate()
            // Comes also if the app alone is near its limit, which the source does not tell.
            observe("UIApplicationDidReceiveMemoryWarningNotification", relieveMemory)
            for name in ["UIApplication", "NSExtensionHost", "WKApplication"] {
                // Requests the time for writing; without it the app may be suspended first. The pass requests its own.
                observe("\(name)DidEnterBackgroundNotification") {
                    ExpiringActivity.request { isExpired in if !isExpired { flush() } }
                }
            }
            observe("UIApplicationWillTerminateNotification", flush)
            observe("NSApplicationWillTerminateNotification", flush)
        }

        deinit {
            pressure.cancel()
            for token in tokens { NotificationCenter.default.removeObserver(token) }
        }

        private func observe(_ name: String, _ action: @escaping @Sendable () -> Void) {
            tokens.append(
                NotificationCenter.default.addObserver(
                    forName: Notification.Name(name), object: nil, queue: nil
                ) { _ in action() })
        }
    }
#endif
