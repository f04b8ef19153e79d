import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Each URL is loaded once: what a cache costs if it cannot help.
enum FirstLoadRows {
    static let groups =
        Delivery.allCases.flatMap { delivery in
            [1 << 10, 16 << 10, 1 << 20, 20 << 20].map { size in
                Group("\(delivery.rawValue), \(name(size))") { report, options, scratch in
                    let origin = try OriginProcess()
                    let rounds = size < 1 << 20 ? 300 : size == 1 << 20 ? 80 : 20
                    let rows = try rows(
                        delivery, size: size, base: origin.base, rounds: options.rounds(rounds), scratch,
                        target: size >= 1 << 20 ? 1.05 : delivery == .delegate ? 1.15 : 1.1)
                    rows.forEach(report.add)
                }
            }
        } + [
            Group("32 at once, 4 KB", run: atOnce), Group("20 ms away", run: far),
            Group("over TLS", run: TLSRows.run),
        ]

    /// Stored and not stored, beside stock with no cache and with Foundation's.
    static func rows(
        _ delivery: Delivery, size: Int, base: String, rounds: Int, delay: Int = 0, _ scratch: Scratch,
        suffix: String = "", target: Double?
    ) throws -> [Row] {
        let folder = "first-\(UUID().uuidString)"
        let ours = Client.cached(scratch.folder(folder))
        let stock = Client.stock()
        let stockCached = Client.stock(withCacheAt: scratch.folder("\(folder)-stock"))
        // So that work left over by a sample does not slow the next one down.
        let flush = { ours.cache!.flush() }
        func side(_ client: Client, _ kind: Origin.Kind) -> Side {
            client.side(by: delivery, prepare: flush, expecting: size) {
                OriginProcess.request(base, kind, bytes: size, $0, for: client.name, delay: delay)
            }
        }
        let samples = try Measure.alternately(
            rounds: rounds,
            [side(ours, .stored), side(ours, .noStore), side(stock, .stored), side(stockCached, .stored)])
        flush()
        // Round 0 is not timed, but numbers its load: the last one's number is that of the rounds.
        for kind in [Origin.Kind.stored, .noStore] {
            let last = OriginProcess.request(
                base, kind, bytes: size, rounds, for: ours.name, delay: delay)
            guard ours.cache!.contains(last) == (kind == .stored) else {
                throw Child.Failure(message: "\(last.url!) was to be \(kind)")
            }
        }
        return [("stored", 0), ("no-store", 1)].map { kind, index in
            Row(
                "first load, \(delivery.rawValue), \(name(size)), \(kind)\(suffix)",
                [samples[index], samples[2], samples[3]], targets: [target])
        }
    }

    private static func atOnce(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let origin = try OriginProcess()
        let size = 4 << 10
        let ours = Client.cached(scratch.folder("at-once"))
        let (count, batch) = (32, 10)
        let clients = [ours, Client.stock(), Client.stock(withCacheAt: scratch.folder("at-once-stock"))]
        for kind in [Origin.Kind.stored, .noStore] {
            let samples = try Measure.alternately(
                rounds: options.rounds(40),
                clients.map { client in
                    Side(
                        client.name, batch: batch, prepare: { ours.cache!.flush() },
                        input: { number in
                            (number * count..<(number + 1) * count).map {
                                origin.request(kind, bytes: size, $0, for: client.name)
                            }
                        },
                        operation: { try client.load($0, expecting: size) })
                })
            report.add(
                Row(
                    throughput: "first loads, 4 KB, 32 at once, \(kind.rawValue)", samples,
                    operations: clients.map { _ in count }, perSecond: true,
                    targets: kind == .stored ? [0.95] : []))
        }
    }

    /// The origin waits before it answers, which imitates one round trip for each request, without those of TCP itself.
    private static func far(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let origin = try OriginProcess()
        for delivery in Delivery.allCases {
            for size in [1 << 10, 16 << 10] {
                let rows = try rows(
                    delivery, size: size, base: origin.base, rounds: options.rounds(50), delay: 20, scratch,
                    suffix: ", 20 ms away", target: nil)
                rows.forEach(report.add)
            }
        }
    }

    static func name(_ size: Int) -> String {
        size < 1 << 20 ? "\(size >> 10) KB" : "\(size >> 20) MB"
    }
}
