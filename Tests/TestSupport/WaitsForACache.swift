import DiskURLCache
import Testing

// What no caller is told: without it a test would not know when to go on.

extension DiskURLCache {
    /// Waits until that many loads wait for the answer to another load's request.
    public func untilLoadsWait(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) async {
        await eventually("\(count) loads that wait", sourceLocation: sourceLocation) { core.loads.waiterCount >= count }
    }

    public var isRefreshing: Bool { core.loads.isRefreshing }

    /// Waits until no refresh in the background is in progress.
    public func untilRefreshed(sourceLocation: SourceLocation = #_sourceLocation) async {
        await eventually("the end of the refresh", sourceLocation: sourceLocation) { !isRefreshing }
    }
}
