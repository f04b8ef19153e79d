import Foundation
import Testing

/// Runs work on so many threads at once, and waits for all of them: in a child process, which does nothing else.
public func onThreads(_ count: Int, _ work: @escaping @Sendable (Int) -> Void) {
    begin(count, work).wait()
}

/// The same in a test: the few threads that all tests share stay free meanwhile. An issue if the threads have not ended
/// after minutes, since the long forms take some.
public func onThreads(
    _ count: Int, sourceLocation: SourceLocation = #_sourceLocation, _ work: @escaping @Sendable (Int) -> Void
) async {
    let group = begin(count, work)
    let running = Guarded(true)
    group.notify(queue: .global()) { running.withLock { $0 = false } }
    var patience = Patience(times: 30)
    while running.withLock({ $0 }) {
        if patience.isOver() { return Patience.issue("\(count) threads to end", sourceLocation) }
        guard (try? await Task.sleep(for: .milliseconds(10))) != nil else { return }
    }
}

private func begin(_ count: Int, _ work: @escaping @Sendable (Int) -> Void) -> DispatchGroup {
    let group = DispatchGroup()
    for number in 0..<count {
        group.enter()
        Thread.detachNewThread {
            work(number)
            group.leave()
        }
    }
    return group
}
