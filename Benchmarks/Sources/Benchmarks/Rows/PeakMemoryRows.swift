import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The most memory that one load of a large body takes: `VmHWM` of a process that does nothing else.
enum PeakMemoryRows {
    static let groups = [
        Group("500 MB by delegate") { report, options, scratch in
            try rows(
                report, options, scratch, .delegate, megabytes: 500, cases: [.notStored, .stored, .diskHit], over: 16)
        },
        Group("100 MB by completion handler") { report, options, scratch in
            try rows(report, options, scratch, .handler, megabytes: 100, cases: [.stored], over: 100)
        },
    ]

    private enum Case: String {
        case stock
        case notStored = "not stored"
        case stored
        case diskHit = "hit from disk"
    }

    /// The target is `over` megabytes more than stock takes, as a ratio to it.
    private static func rows(
        _ report: Report, _ options: Options, _ scratch: Scratch, _ delivery: Delivery, megabytes: Int,
        cases: [Case], over: Double
    ) throws {
        let origin = try OriginProcess()
        var peaks: [Case: [Double]] = [:]
        for round in 0..<(options.isQuick ? 1 : 3) {
            let directory = scratch.folder("peak-\(megabytes)-\(round)").path
            // A hit follows the store that it finds.
            for each in [.stock] + cases {
                let peak = try Child.value(
                    Double.self,
                    of: ["peak", each.rawValue, delivery.rawValue, "\(megabytes)", origin.base, directory])
                peaks[each, default: []].append(peak)
            }
        }
        let stock = Samples(name: "stock", peaks[.stock]!)
        for each in cases {
            let samples = Samples(name: each.rawValue, peaks[each]!)
            var row = Row(
                "peak memory, \(megabytes) MB by \(delivery.rawValue), \(each.rawValue)", value: samples.median,
                unit: "MB", target: stock.median + over)
            row.n = samples.sorted.count
            row.compare(with: stock, target: nil)
            report.add(row)
        }
    }

    static func child(_ arguments: [String]) throws {
        guard arguments.count == 5, let each = Case(rawValue: arguments[0]),
            let delivery = Delivery(rawValue: arguments[1]), let megabytes = Int(arguments[2])
        else { throw Child.Failure(message: "peak: \(arguments)") }
        let client =
            each == .stock
            ? Client.stock() : Client.cached(URL(fileURLWithPath: arguments[4]), memoryCapacity: 16 << 20)
        let bytes = megabytes << 20
        let request = OriginProcess.request(
            arguments[3], each == .notStored ? .noStore : .stored, bytes: bytes, 0)
        switch delivery {
        case .delegate: try client.loadByDelegate(request, expecting: bytes)
        default: try client.load([request], expecting: bytes)
        }
        client.cache?.flush()
        let peak = try Memory.peakBytes()
        if let cache = client.cache {
            guard cache.contains(request) == (each != .notStored), (cache.statistics.diskHits > 0) == (each == .diskHit)
            else { throw Child.Failure(message: "\(each.rawValue): \(cache.statistics)") }
        }
        try Child.print(Double(peak) / 1_048_576)
    }
}
