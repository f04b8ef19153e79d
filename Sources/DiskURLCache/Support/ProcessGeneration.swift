import Foundation

/// Tells a process from the child that it forked, which has its memory but not its threads, without a system call for
/// each question.
enum ProcessGeneration {
    // Changed only in a child that was just forked: it has one thread.
    nonisolated(unsafe) private static var count = 0

    private static let isCounting: Bool = pthread_atfork(nil, nil, { ProcessGeneration.count += 1 }) == 0

    /// Each forked child gets a new number.
    static var current: Int { isCounting ? count : Int(getpid()) }
}
