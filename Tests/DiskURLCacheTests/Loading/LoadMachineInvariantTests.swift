import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What holds whatever comes in whatever order.
@Suite(.fewAtATime) struct LoadMachineInvariantTests {
    /// Random events of those that can come in each state. The generator is seeded, so that a failure can be seen
    /// again.
    @Test(arguments: 0..<TestLength.pick(plain: 10, long: 400)) func randomEvents(seed: Int) {
        var random = TestRandom(seed)
        for _ in 0..<250 {
            var load = MachineDriver(
                method: ["GET", "GET", "HEAD", "POST"].randomElement(using: &random) ?? "GET",
                fields: [[:], ["Range": "bytes=0-1"], ["If-None-Match": "\"e\""], ["Cache-Control": "max-stale"]]
                    .randomElement(using: &random) ?? [:],
                policy: URLRequest.CachePolicy(rawValue: UInt.random(in: 0...5, using: &random))
                    ?? .useProtocolCachePolicy
            ) {
                $0.streams = .random(using: &random)
                $0.confirmsStorage = .random(using: &random)
                $0.confirmsRedirects = .random(using: &random)
                $0.isOffline = Int.random(in: 0..<8, using: &random) == 0
            }
            var actions: [String] = []
            var isOver = false
            var isCancelled = false
            for _ in 0..<25 {
                let event = Self.event(&load, &random)
                let next = event.actions.all
                isCancelled = isCancelled || event.isCancel
                if isOver { #expect(next.isEmpty, "seed \(seed): \(actions) then \(next)") }
                if event.isCancel { #expect(next.allSatisfy { $0 == "cancelFetch" }) }
                actions += next
                let asks = next.dropLast().filter(Self.asks)
                #expect(asks.isEmpty, "seed \(seed): \(next)")
                isOver = isOver || load.hasEnded
            }
            check(actions, isCancelled: isCancelled, isOver: isOver, seed: seed)
        }
    }

    private func check(_ actions: [String], isCancelled: Bool, isOver: Bool, seed: Int) {
        let heads = actions.indices.filter { actions[$0].contains("Head") }
        let data = actions.indices.filter { actions[$0].hasPrefix("data ") }
        let ends = actions.indices.filter { actions[$0] == "finish" || actions[$0].hasPrefix("fail ") }
        #expect(heads.count <= 1, "seed \(seed): \(actions)")
        #expect(ends.count <= 1, "seed \(seed): \(actions)")
        if isOver, !isCancelled { #expect(ends.count == 1, "seed \(seed): \(actions)") }
        if let end = ends.first {
            #expect(end == actions.count - 1, "seed \(seed): \(actions)")
            #expect(actions.contains { $0.hasPrefix("report") }, "seed \(seed): \(actions)")
            if actions[end] == "finish" { #expect(heads.count == 1, "seed \(seed): \(actions)") }
        }
        if let first = data.first { #expect(heads.first.map { $0 < first } == true, "seed \(seed): \(actions)") }
    }

    /// Whoever answers such an action may do so before the rest of the list is carried out.
    private static func asks(_ action: String) -> Bool {
        ["lookUp", "readBody", "fetch", "confirm"].contains { action.hasPrefix($0) }
    }

    private static func event(
        _ load: inout MachineDriver, _ random: inout TestRandom
    ) -> (actions: MachineActions, isCancel: Bool) {
        let stored: [MachineDriver.Stored] = [.fresh, .stale(), .stale("stale-if-error=600"), .redirect, .part]
        let fields: [HeaderFields] = [
            [:], ["Cache-Control": "max-age=60"], ["Cache-Control": "no-store"], ["ETag": "\"e\""],
            ["ETag": "\"other\""], ["ETag": "\"e\"", "Content-Range": "bytes 6-9/10"], ["Location": "/b"],
            ["Location": "/b", "Cache-Control": "max-age=60"],
        ]
        // An app may call a handler twice, a wait may end late, and a cancellation may cross anything.
        switch Int.random(in: 0..<24, using: &random) {
        case 0: return (load.cancel(), true)
        case 1: return (load.confirm(Bool.random(using: &random) ? "edited" : nil), false)
        case 2, 3: return (load.redirect(to: Bool.random(using: &random) ? "/c" : nil), false)
        case 4: return (load.waitEnded(mayWaitAgain: .random(using: &random)), false)
        default: break
        }
        switch load.machine.state {
        case .lookingUp:
            return (load.found(stored.shuffled(using: &random).suffix(.random(in: 0...2, using: &random))), false)
        case .reading, .readingForAnswer: return (load.body(Bool.random(using: &random) ? "stored" : nil), false)
        case .confirmingStorage: return (load.confirm(Bool.random(using: &random) ? "edited" : nil), false)
        case .redirecting: return (load.redirect(to: Bool.random(using: &random) ? "/c" : nil), false)
        case .fetching, .ended:
            switch Int.random(in: 0..<9, using: &random) {
            case 0...3:
                let status = [200, 206, 301, 302, 304, 404, 503, 103].randomElement(using: &random) ?? 200
                return (load.head(status, fields.randomElement(using: &random) ?? [:]), false)
            case 4, 5: return (load.data("chunk"), false)
            default: return (load.end(Int.random(in: 0..<4, using: &random) == 0 ? .timedOut : nil), false)
            }
        }
    }
}
