import Foundation

/// The command line.
struct Options {
    var jsonPath: String?
    /// Ends within two minutes: fewer rounds, at most 10,000 entries.
    var isQuick = false
    /// Adds the costs against size and entry count up to 50 MB and 1,000,000 entries.
    var sweeps = false
    /// Only sections whose name contains this.
    var only: String?
    /// Where scratch directories are made; the file system under it is what the disk rows measure.
    var scratch = FileManager.default.temporaryDirectory.path

    static let usage = """
        usage: Benchmarks [--quick] [--sweep] [--only SECTION] [--scratch DIRECTORY] [--json FILE]
          --quick    ends within two minutes: fewer rounds, at most 10,000 entries
          --sweep    adds costs against body size (to 50 MB) and entry count (to 1,000,000)
          --only     sections whose name contains SECTION: memory, disk hit, miss, store, capacity, open, threads,
                     session, space, trace, sweep
          --scratch  a directory on the file system to measure
          --json     writes one object for each row
        """

    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--quick": isQuick = true
            case "--sweep": sweeps = true
            case "--json":
                guard let value = rest.popFirst() else { return nil }
                jsonPath = value
            case "--only":
                guard let value = rest.popFirst() else { return nil }
                only = value
            case "--scratch":
                guard let value = rest.popFirst() else { return nil }
                scratch = value
            default: return nil
            }
        }
    }

    func includes(_ section: String) -> Bool { only.map { section.contains($0) } ?? true }

    var manyEntries: Int { isQuick ? 10_000 : 100_000 }
    /// Rounds, of which the quick run makes a share.
    func rounds(_ count: Int) -> Int { isQuick ? max(5, count / 5) : count }
}
