#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// Random scripts against the reference model: no answer that the model does not allow.
    ///
    /// `DISKURLCACHE_MODEL_SECONDS` says for how long. `DISKURLCACHE_MODEL_START` begins with the seed that an earlier
    /// run printed. `DISKURLCACHE_MODEL_SEED` runs the script of one seed again and again: its steps are the same,
    /// while the threads take their own time. Without any of them it runs twenty scripts that are always the same;
    /// `.ci/run model` runs others for a minute.
    @Suite(.fewAtATime, .serialized)
    struct ModelTests {
        @Test func randomScripts() async throws {
            let start = Date()
            let peers = try (0..<3).map { _ in try ModelPeer() }
            let replayed = TestLength.modelSeed
            let isRandom = replayed == nil && TestLength.modelSeconds != nil
            var seed = replayed ?? TestLength.modelStart ?? (isRandom ? Int(UInt32.random(in: 1 ... .max)) : 1)
            print("model: seed \(seed)")
            var count = 0
            while TestLength.modelSeconds.map({ -start.timeIntervalSinceNow < Double($0) })
                ?? (count < (replayed == nil ? 20 : 200))
            {
                count += 1
                let script = ModelScript(seed: seed, peerLimit: peers.count)
                if let failure = try await failure(of: script, peers) {
                    Issue.record("the model does not allow this:\n\(failure)")
                    try await printShortest(of: script, peers)
                    return
                }
                if replayed == nil { seed += 1 }
            }
            print("model: \(count) scripts, the last with seed \(seed), in \(Int(-start.timeIntervalSinceNow)) s")
        }

        private func failure(of script: ModelScript, _ peers: [ModelPeer]) async throws -> String? {
            let runner = try ModelRunner(script, peers: peers)
            guard let violation = await runner.run() else { return nil }
            let path = ModelOrigin.paths.first { violation.contains(" \($0) ") }
            let settings =
                "seed \(script.seed), \(script.peers) peers, memory \(script.memory), disk \(script.disk)"
            return ([violation, settings] + runner.model.trace(of: path)).joined(separator: "\n")
        }

        /// Leaves out what can be left out, as long as the rest still fails in one of a few runs.
        private func printShortest(of script: ModelScript, _ peers: [ModelPeer]) async throws {
            var (script, tries, size) = (script, 0, max(1, script.steps.count / 2))
            var best: String?
            while tries < 300 {
                var position = 0
                var isShorter = false
                while position < script.steps.count, tries < 300 {
                    var shorter = script
                    shorter.steps.removeSubrange(position..<min(position + size, script.steps.count))
                    var found: String?
                    for _ in 0..<3 where found == nil {
                        tries += 1
                        found = try await failure(of: shorter, peers)
                    }
                    if let found {
                        script = shorter
                        best = found
                        isShorter = true
                    } else {
                        position += size
                    }
                }
                if size > 1 { size /= 2 } else if !isShorter { break }
            }
            print("model: the shortest script found, \(script.steps.count) steps:\n\(best ?? "the first one")")
        }
    }
#endif
