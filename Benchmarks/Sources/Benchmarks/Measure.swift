import Foundation

/// Rows that are measured together. `--filter` chooses by section and name.
struct Group: Sendable {
    let name: String
    let run: @Sendable (Report, Options, Scratch) throws -> Void

    init(_ name: String, run: @escaping @Sendable (Report, Options, Scratch) throws -> Void) {
        self.name = name
        self.run = run
    }
}

/// One side of a comparison.
struct Side {
    let name: String
    /// The number of operations in a sample: large if a single operation is too short for the clock.
    let batch: Int
    /// Called before each sample, and not timed.
    let prepare: () throws -> Void
    /// Performs a batch of operations, whose numbers increase over the whole run, and returns the nanoseconds that they
    /// took.
    let sample: (Range<Int>) throws -> UInt64

    init(
        name: String, batch: Int = 1, prepare: @escaping () throws -> Void = {},
        sample: @escaping (Range<Int>) throws -> UInt64
    ) {
        self.name = name
        self.batch = batch
        self.prepare = prepare
        self.sample = sample
    }

    /// Operations on the thread that measures.
    init(
        _ name: String, batch: Int = 1, prepare: @escaping () throws -> Void = {},
        operation: @escaping (Int) throws -> Void
    ) {
        self.init(name: name, batch: batch, prepare: prepare) { numbers in
            let start = Measure.nanoseconds()
            for number in numbers { try operation(number) }
            return Measure.nanoseconds() - start
        }
    }

    /// Operations with inputs, such as requests, that are made before the clock starts.
    init<Input>(
        _ name: String, batch: Int = 1, prepare: @escaping () throws -> Void = {},
        input: @escaping (Int) -> Input, operation: @escaping (Input) throws -> Void
    ) {
        self.init(name: name, batch: batch, prepare: prepare) { numbers in
            let inputs = numbers.map(input)
            let start = Measure.nanoseconds()
            for input in inputs { try operation(input) }
            return Measure.nanoseconds() - start
        }
    }

    /// The same, one after the other in one task; the task's own start and end are not timed.
    static func async<Input: Sendable>(
        _ name: String, batch: Int = 1, prepare: @escaping () throws -> Void = {},
        input: @escaping (Int) -> Input, operation: @escaping @Sendable (Input) async throws -> Void
    ) -> Side {
        Side(name: name, batch: batch, prepare: prepare) { numbers in
            let inputs = numbers.map(input)
            return try blocking {
                let start = Measure.nanoseconds()
                for input in inputs { try await operation(input) }
                return Measure.nanoseconds() - start
            }
        }
    }
}

/// Runs a task and waits for it. Must not be called on a thread of Swift's pool.
func blocking<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws -> Value {
    let outcome = Outcome<Value>()
    let done = DispatchSemaphore(value: 0)
    Task {
        do { outcome.result = .success(try await body()) } catch { outcome.result = .failure(error) }
        done.signal()
    }
    done.wait()
    return try outcome.result!.get()
}

private final class Outcome<Value>: @unchecked Sendable {
    // @unchecked: written before the signal, read after the wait.
    var result: Result<Value, any Error>?
}

/// Times of one side, in microseconds for one operation, sorted.
struct Samples {
    let name: String
    let sorted: [Double]

    init(name: String, _ values: [Double]) {
        self.name = name
        sorted = values.sorted()
    }

    var median: Double { quantile(0.5) }
    var p99: Double { quantile(0.99) }
    var longest: Double { sorted.last ?? .nan }

    func quantile(_ share: Double) -> Double {
        guard !sorted.isEmpty else { return .nan }
        return sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }
}

enum Measure {
    /// Measures the sides in turns, one sample each, so that other work of the machine affects all sides alike. Their
    /// order is chance, the same at each run: in a fixed one, each side would follow the same other side and find what
    /// that left in the processor's caches. The first round is for warming up and does not count.
    static func alternately(rounds: Int, _ sides: [Side]) throws -> [Samples] {
        var times = sides.map { _ in [Double]() }
        var numbers = sides.map { _ in 0 }
        var generator = SeededGenerator(seed: 1)
        for round in 0...rounds {
            for index in sides.indices.shuffled(using: &generator) {
                let side = sides[index]
                try side.prepare()
                let first = numbers[index]
                let time = try side.sample(first..<first + side.batch)
                numbers[index] += side.batch
                if round > 0 { times[index].append(Double(time) / 1_000 / Double(side.batch)) }
            }
        }
        return zip(sides, times).map { Samples(name: $0.name, $1) }
    }

    /// The microseconds of one call.
    static func once(_ body: () throws -> Void) rethrows -> Double {
        let start = nanoseconds()
        try body()
        return Double(nanoseconds() - start) / 1_000
    }

    static func nanoseconds() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

/// Keeps the optimiser from removing a result that is not used.
@inline(never)
func consume<Value>(_ value: Value) {}

/// A small and fast generator with a fixed seed, so that every run uses the same keys.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64 = 0x9e37_79b9_7f4a_7c15) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}
