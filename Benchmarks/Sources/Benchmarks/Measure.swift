import Foundation

/// One side of a comparison.
struct Side {
    let name: String
    /// Operations in one sample: large where one operation is shorter than the clock can tell.
    let batch: Int
    /// Done before each sample, not timed.
    let prepare: () throws -> Void
    /// One operation; the number counts up over the whole run.
    let operation: (Int) throws -> Void

    init(
        _ name: String, batch: Int = 1, prepare: @escaping () throws -> Void = {},
        operation: @escaping (Int) throws -> Void
    ) {
        self.name = name
        self.batch = batch
        self.prepare = prepare
        self.operation = operation
    }
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

    private func quantile(_ share: Double) -> Double {
        guard !sorted.isEmpty else { return .nan }
        return sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }
}

enum Measure {
    /// Times the sides in turns, one sample each, and lets each begin as often as the others: what else the machine does
    /// then falls on all alike. The first round warms up and does not count.
    static func alternately(rounds: Int, _ sides: [Side]) throws -> [Samples] {
        var times = sides.map { _ in [Double]() }
        var numbers = sides.map { _ in 0 }
        for round in 0...rounds {
            for turn in sides.indices {
                let index = (turn + round) % sides.count
                let side = sides[index]
                try side.prepare()
                let first = numbers[index]
                let start = nanoseconds()
                for number in first..<first + side.batch { try side.operation(number) }
                let end = nanoseconds()
                numbers[index] += side.batch
                if round > 0 { times[index].append(Double(end - start) / 1_000 / Double(side.batch)) }
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

/// Keeps the optimiser from dropping a result that nobody uses.
@inline(never)
func consume<Value>(_ value: Value) {}

/// A small fast generator with a fixed seed: every run asks for the same keys.
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
