/// The places of words in tables in memory. The words are hashes with seeds that are known, since they are on disk,
/// too: a server could choose URLs with words that are alike. The number of the process, on which the places depend, it
/// does not know.
struct TableSeed: Sendable {
    static let ofProcess = TableSeed(factor: .random(in: .min ... .max) | 1 << 63 | 1)

    let factor: UInt64

    @inline(__always)
    func hash(_ word: UInt64) -> Int { Int(truncatingIfNeeded: word.multipliedFullWidth(by: factor).high) }
}
