import Testing

@testable import DiskURLCache

/// A suite whose tests have servers and sessions: few of them run at a time, in all such suites together. Each has up
/// to dozens of open files, and a shell allows a process 1,024 of them by default (256 on macOS).
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
        try await function()
    }
}

extension Trait where Self == FewAtATime {
    static var fewAtATime: FewAtATime { FewAtATime() }
}
