import Foundation
import Testing

@testable import DiskURLCache

/// What a cache does at the moments of an app's life, told by notifications of their names: on every platform, with a
/// centre of the test's own.
@Suite struct AppLifeTests {
    /// Writes down what happens, in order.
    private final class Life: Sendable {
        let center = NotificationCenter()
        let log = Mutex<[String]>([])
        let isOver = DispatchSemaphore(value: 0)

        func note(_ what: String) { log.withLock { $0.append(what) } }

        func observer(grantsTime: Bool = true) -> AppLifeObserver {
            let time = ExpiringTime { handler in
                self.note("system asked")
                Thread.detachNewThread {
                    handler(!grantsTime)
                    self.isOver.signal()
                }
            }
            return AppLifeObserver(
                center: center, time: time, relieveMemory: { self.note("memory") }, flush: { self.note("flush") })
        }

        func post(_ name: String) -> [String] {
            log.withLock { $0 = [] }
            center.post(name: Notification.Name(name + "Notification"), object: nil)
            return log.withLock { $0 }
        }
    }

    @Test func aMemoryWarningEmptiesTheMemory() {
        let life = Life()
        let observer = life.observer()
        #expect(life.post("UIApplicationDidReceiveMemoryWarning") == ["memory"])
        withExtendedLifetime(observer) {}
    }

    @Test(arguments: ["UIApplication", "NSExtensionHost", "WKApplication"], [true, false])
    func inTheBackgroundTheIndexIsSavedInTimeOfTheSystem(_ name: String, _ grantsTime: Bool) {
        let life = Life()
        let observer = life.observer(grantsTime: grantsTime)
        #expect(life.post(name + "DidBecomeActive") == [])
        _ = life.post(name + "DidEnterBackground")
        life.isOver.isSignalled("the system's time")
        #expect(life.log.withLock { $0 } == ["system asked"] + (grantsTime ? ["flush"] : []))
        withExtendedLifetime(observer) {}
    }

    @Test(arguments: ["UIApplication", "NSApplication"]) func atTheEndTheIndexIsSavedAtOnce(_ name: String) {
        let life = Life()
        let observer = life.observer()
        #expect(life.post(name + "WillTerminate") == ["flush"], "nobody waits for the system")
        withExtendedLifetime(observer) {}
    }

    @Test func aCacheThatIsGoneObservesNothing() {
        let life = Life()
        var observer: AppLifeObserver? = life.observer()
        withExtendedLifetime(observer) {}
        observer = nil
        #expect(life.post("NSApplicationWillTerminate") == [])
    }
}
