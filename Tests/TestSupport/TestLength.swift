import Foundation

/// The length of those tests that find more the longer they run: crash loops, soaks, fuzzers and the like.
///
/// `swift test` runs the plain form. `DISKURLCACHE_LONG=1 swift test` runs the long form, as the step `long` of
/// `.ci/run` does for the suites that have one. A variable with a number sets one of the counts by itself, in either
/// form.
///
/// The variables are listed in `CONTRIBUTING.md`.
public enum TestLength {
    public static let isLong = ProcessInfo.processInfo.environment["DISKURLCACHE_LONG"] == "1"

    /// Kills of processes under load, and histories at the end of which the power fails: the seed of each.
    public static let crashSeeds: Range<Int> = {
        let first = fuzzSeed ?? 1
        return first..<first + count("DISKURLCACHE_CRASH_ROUNDS", plain: 4, long: 200)
    }()
    /// Orders of the calls of several caches: the seed of each.
    public static let scheduleSeeds: Range<Int> = {
        let first = fuzzSeed ?? 1
        return first..<first + (number("DISKURLCACHE_SCHEDULES") ?? 0)
    }()
    public static var hasSchedules: Bool { !scheduleSeeds.isEmpty }
    /// Inputs for each decoder and each parser.
    public static let fuzzIterations = count("DISKURLCACHE_FUZZ_ITERATIONS", plain: 2_000, long: 500_000)
    /// A seed for the parsers' inputs, or the first one for crashes, instead of the fixed one.
    public static let fuzzSeed = number("DISKURLCACHE_FUZZ_SEED")
    /// Megabytes that are stored under a hard limit of memory.
    public static let soakMegabytes = count("DISKURLCACHE_SOAK_MEGABYTES", plain: 64, long: 4096)
    /// How long a process loads with and without the cache.
    public static let soakSeconds = count("DISKURLCACHE_SOAK_SECONDS", plain: 1, long: 60)
    /// How long threads change two caches on one directory.
    public static let churnSeconds = count("DISKURLCACHE_CHURN_SECONDS", plain: 1, long: 20)
    /// How long random scripts run against the reference model, in seconds; nil for a few dozen scripts.
    public static let modelSeconds = number("DISKURLCACHE_MODEL_SECONDS")
    /// The seed whose script is run again and again.
    public static let modelSeed = number("DISKURLCACHE_MODEL_SEED")
    /// The seed of the first script.
    public static let modelStart = number("DISKURLCACHE_MODEL_START")
    /// Rounds of a timer through every order of calls.
    public static let timerRounds = count("DISKURLCACHE_TIMER_ROUNDS", plain: 1, long: 200)

    /// Operations of each thread in a test with several; the two numbers are the test's own.
    public static func operations(plain: Int, long: Int) -> Int {
        count("DISKURLCACHE_OPERATIONS", plain: plain, long: long)
    }

    /// Which bits of a byte are flipped in turn: one of each byte in the plain form, and all in the long form.
    public static func bits(at position: Int) -> Range<Int> {
        isLong ? 0..<8 : position % 8..<position % 8 + 1
    }

    /// For what has no variable of its own.
    public static func pick<Value>(plain: Value, long: Value) -> Value {
        isLong ? long : plain
    }

    private static func count(_ name: String, plain: Int, long: Int) -> Int {
        number(name) ?? pick(plain: plain, long: long)
    }

    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap(Int.init)
    }
}

/// Numbers that look random and are the same in each run.
public struct TestRandom: RandomNumberGenerator {
    private var state: UInt64

    public init(_ seed: Int) {
        state = UInt64(truncatingIfNeeded: seed) &* 0x9E37_79B9_7F4A_7C15 | 1
    }

    public mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state &* 0x2545_F491_4F6C_DD1D
    }
}
