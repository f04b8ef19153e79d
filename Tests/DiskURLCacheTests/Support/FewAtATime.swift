import Foundation
import Testing

@testable import DiskURLCache

/// For suites whose tests have servers and sessions: of all their tests only a few run at a time. Each test has dozens
/// of open files, and by default a shell allows a process 1,024 (256 on macOS).
struct FewAtATime: SuiteTrait, TestTrait, TestScoping {
    private struct Slots {
        var free = 12
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private static let slots = Mutex(Slots())

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        await withCheckedContinuation { turn in
            let isFree = Self.slots.withLock { slots in
                guard slots.free > 0 else {
                    slots.waiting.append(turn)
                    return false
                }
                slots.free -= 1
                return true
            }
            if isFree { turn.resume() }
        }
        defer {
            let next: CheckedContinuation<Void, Never>? = Self.slots.withLock { slots in
                guard slots.waiting.isEmpty else { return slots.waiting.removeFirst() }
                slots.free += 1
                return nil
            }
            next?.resume()
        }
        let hasEnded = DispatchSemaphore(value: 0)
        defer { hasEnded.signal() }
        Thread.detachNewThread { Self.watch(hasEnded, test.name) }
        try await function()
    }

    /// A load that never answers would hang the run, and the test cannot be left: so the process ends, and says why.
    private static func watch(_ hasEnded: DispatchSemaphore, _ name: String) {
        let isLong = TestLength.isLong || TestLength.modelSeconds != nil
        var patience = Patience(times: isLong ? 200 : 6)
        while hasEnded.wait(timeout: .now() + .milliseconds(100)) == .timedOut {
            guard patience.isOver() else { continue }
            let words = Array("✘ Test \(name) hangs: it did not end in \(6 * Patience.seconds) s.\n".utf8)
            _ = write(1, words, words.count)
            fatalError("the test \(name) hangs")
        }
    }
}

extension Trait where Self == FewAtATime {
    static var fewAtATime: FewAtATime { FewAtATime() }
}
