import Metrics
import NIOConcurrencyHelpers

/// A metrics system that prints its metrics in the text format of Prometheus. Timers are histograms. For this
/// demonstration only, since it never forgets a metric; in your server use swift-prometheus.
final class PrometheusText: MetricsFactory {
    private struct Name: Hashable {
        let label: String
        let dimensions: [String]
    }

    private let values = NIOLockedValueBox<[Name: Value]>([:])

    /// All metrics by name.
    var text: String {
        let all = values.withLockedValue { $0 }.sorted {
            ($0.key.label, $0.key.dimensions.joined()) < ($1.key.label, $1.key.dimensions.joined())
        }
        var (text, last) = ("", "")
        for (name, value) in all {
            if name.label != last { text += "# TYPE \(name.label) \(value.kind.rawValue)\n" }
            last = name.label
            func line(_ suffix: String, _ number: Double, _ more: [String] = []) {
                let dimensions = (name.dimensions + more).joined(separator: ",")
                text += "\(name.label)\(suffix)\(dimensions.isEmpty ? "" : "{\(dimensions)}") "
                text += "\(Int(exactly: number).map(String.init) ?? "\(number)")\n"
            }
            let (sum, counts) = value.read()
            if value.kind == .histogram {
                for (bound, count) in zip(Value.bounds, counts) { line("_bucket", count, ["le=\"\(bound)\""]) }
                line("_bucket", counts.last ?? 0, ["le=\"+Inf\""])
                line("_sum", sum)
                line("_count", counts.last ?? 0)
            } else {
                line("", sum)
            }
        }
        return text
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        value(label, dimensions, .counter)
    }
    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        value(label, dimensions, .gauge)
    }
    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        value(label, dimensions, aggregate ? .histogram : .gauge)
    }
    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        value("\(label)_seconds", dimensions, .histogram)
    }
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}

    private func value(_ label: String, _ dimensions: [(String, String)], _ kind: Value.Kind) -> Value {
        func plain(_ text: String) -> String {
            String(text.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
        }
        let list = dimensions.map { name, value in
            let quoted = value.map { $0 == "\n" ? "\\n" : $0 == "\"" || $0 == "\\" ? "\\\($0)" : "\($0)" }.joined()
            return "\(plain(name))=\"\(quoted)\""
        }
        let name = Name(label: plain(label), dimensions: list)
        return values.withLockedValue { values in
            let value = values[name] ?? Value(kind)
            values[name] = value
            return value
        }
    }
}

private final class Value: CounterHandler, MeterHandler, RecorderHandler, TimerHandler {
    enum Kind: String {
        case counter
        case gauge
        case histogram
    }

    /// The upper bounds of the buckets, in seconds. There is one more bucket without a bound.
    static let bounds = [0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5]

    let kind: Kind
    /// A bucket includes the counts of all smaller ones.
    private let state = NIOLockedValueBox((sum: 0.0, counts: [Double](repeating: 0, count: bounds.count + 1)))

    init(_ kind: Kind) { self.kind = kind }

    func read() -> (sum: Double, counts: [Double]) { state.withLockedValue { $0 } }
    func reset() { state.withLockedValue { $0 = (0, $0.counts.map { _ in 0 }) } }

    func increment(by amount: Int64) { increment(by: Double(amount)) }
    func increment(by amount: Double) {
        state.withLockedValue { state in
            state.sum += amount
            let first = Self.bounds.firstIndex { amount <= $0 } ?? Self.bounds.count
            for bucket in first...Self.bounds.count { state.counts[bucket] += 1 }
        }
    }
    func decrement(by amount: Double) { increment(by: -amount) }
    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { state.withLockedValue { $0.sum = value } }
    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) { if kind == .gauge { set(value) } else { increment(by: value) } }
    func recordNanoseconds(_ duration: Int64) { increment(by: Double(duration) / 1e9) }
}
