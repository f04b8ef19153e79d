import Metrics
import NIOConcurrencyHelpers

/// A metrics system that can tell what it has, in the text that Prometheus reads. For show: it has no histograms and forgets nothing. A
/// server of yours takes swift-prometheus or the like.
final class PrometheusText: MetricsFactory {
    private struct Name: Hashable {
        let label: String
        let dimensions: String
    }

    private let values = NIOLockedValueBox<[Name: Value]>([:])

    /// All metrics by name.
    var text: String {
        let all = values.withLockedValue { $0 }.sorted {
            ($0.key.label, $0.key.dimensions) < ($1.key.label, $1.key.dimensions)
        }
        var (text, last) = ("", "")
        for (name, value) in all {
            if name.label != last { text += "# TYPE \(name.label) \(value.kind.rawValue)\n" }
            last = name.label
            let (sum, count) = value.read()
            if value.kind == .summary {
                text += "\(name.label)_sum\(name.dimensions) \(sum)\n\(name.label)_count\(name.dimensions) \(count)\n"
            } else {
                text += "\(name.label)\(name.dimensions) \(Int(exactly: sum).map(String.init) ?? "\(sum)")\n"
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
        value(label, dimensions, aggregate ? .summary : .gauge)
    }
    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        value("\(label)_seconds", dimensions, .summary)
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
        let name = Name(label: plain(label), dimensions: list.isEmpty ? "" : "{\(list.joined(separator: ","))}")
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
        /// A sum and how many were added.
        case summary
    }

    let kind: Kind
    private let state = NIOLockedValueBox((sum: 0.0, count: 0))

    init(_ kind: Kind) { self.kind = kind }

    func read() -> (sum: Double, count: Int) { state.withLockedValue { $0 } }
    func reset() { state.withLockedValue { $0 = (0, 0) } }

    func increment(by amount: Int64) { increment(by: Double(amount)) }
    func increment(by amount: Double) {
        state.withLockedValue { state in
            state.sum += amount
            state.count += 1
        }
    }
    func decrement(by amount: Double) { increment(by: -amount) }
    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { state.withLockedValue { $0.sum = value } }
    func record(_ value: Int64) { record(Double(value)) }
    func record(_ value: Double) { if kind == .gauge { set(value) } else { increment(by: value) } }
    func recordNanoseconds(_ duration: Int64) { increment(by: Double(duration) / 1e9) }
}
