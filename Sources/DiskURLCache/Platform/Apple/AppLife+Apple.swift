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
                observe("\(name)DidBecomeActiveNotification") { ExpiringTime.shared.endsSuspension() }
                observe("\(name)DidEnterBackgroundNotification") {
                    ExpiringTime.shared.allowsSuspension()
                    // Without time for writing the app may be suspended first.
                    ExpiringTime.shared.request { isExpired in if !isExpired { flush() } }
                }
            }
            for name in ["UIApplication", "NSApplication"] {
                observe("\(name)WillTerminateNotification") {
                    ExpiringTime.shared.endsSuspension()
                    flush()
                }
            }
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

    extension ExpiringTime {
        /// A Mac suspends no process.
        static let shared = ExpiringTime { handler in
            #if os(macOS)
                DispatchQueue.global(qos: .utility).async { handler(false) }
            #else
                ProcessInfo.processInfo.performExpiringActivity(withReason: "DiskURLCache", using: handler)
            #endif
        }
    }
#endif
