import Dispatch
import Foundation

/// Observes the notifications of an app's life for one cache, on Apple platforms (`Platform.hasAppLife`). Their names
/// are spelt out so that neither UIKit nor AppKit is linked, and app extensions can use the library.
final class AppLifeObserver: @unchecked Sendable {
    // @unchecked: the tokens are set in `init` and read in `deinit`; the rest is constant.
    private let center: NotificationCenter
    private let time: ExpiringTime
    private var tokens: [any NSObjectProtocol] = []
    /// The system's own word that memory runs short. Nil where it gives none.
    private let pressure: (any DispatchSourceProtocol)?

    init(
        center: NotificationCenter = .default, time: ExpiringTime = .shared,
        relieveMemory: @escaping @Sendable () -> Void, flush: @escaping @Sendable () -> Void
    ) {
        self.center = center
        self.time = time
        pressure = LoadingSystem.memoryPressure(relieveMemory)
        // Comes also if the app alone is near its limit, which the source does not tell.
        observe("UIApplicationDidReceiveMemoryWarningNotification", relieveMemory)
        for name in ["UIApplication", "NSExtensionHost", "WKApplication"] {
            observe("\(name)DidBecomeActiveNotification") { time.endsSuspension() }
            observe("\(name)DidEnterBackgroundNotification") {
                time.allowsSuspension()
                // Without time for writing the app may be suspended first.
                time.request { isExpired in if !isExpired { flush() } }
            }
        }
        for name in ["UIApplication", "NSApplication"] {
            observe("\(name)WillTerminateNotification") {
                time.endsSuspension()
                flush()
            }
        }
    }

    deinit {
        pressure?.cancel()
        for token in tokens { center.removeObserver(token) }
    }

    private func observe(_ name: String, _ action: @escaping @Sendable () -> Void) {
        tokens.append(
            center.addObserver(forName: Notification.Name(name), object: nil, queue: nil) { _ in action() })
    }
}
