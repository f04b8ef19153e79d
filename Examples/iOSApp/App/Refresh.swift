import BackgroundTasks
import DiskURLCache
import Foundation

/// Loads the pictures in the background before they are needed. The system decides when.
enum Refresh {
    /// As in `Info.plist`.
    static let identifier = "com.example.DiskURLCacheApp.refresh"

    static func schedule() {
        let request = BGAppRefreshTaskRequest(identifier: identifier)
        request.earliestBeginDate = Date(timeIntervalSinceNow: 15 * 60)
        // Fails in the simulator, which has no background refresh.
        try? BGTaskScheduler.shared.submit(request)
    }

    /// What is stored and fresh is not loaded again. When the system's time is over, the task is cancelled, and loads
    /// that have not begun do not begin.
    static func run(_ cache: DiskURLCache) async {
        schedule()
        _ = await cache.prefetch(PicturesView.urls.map { URLRequest(url: $0) })
        await cache.perform { $0.flush() }
    }
}
