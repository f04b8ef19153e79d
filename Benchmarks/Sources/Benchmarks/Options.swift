import Foundation

/// The command line.
struct Options {
    var jsonPath: String?
    /// Fewer rounds, at most 10,000 entries.
    var isQuick = false
    /// Adds rows that show the costs by body size, up to 50 MB, and by number of entries, up to 1,000,000.
    var sweeps = false
    /// Only groups of rows whose name contains this.
    var filter: String?
    var lists = false
    /// Where scratch directories are made; the file system under it is what the disk rows measure.
    var scratch = FileManager.default.temporaryDirectory.path
    /// A name for the measured copy of the library, printed with the set-up.
    var label: String?

    static let usage = """
        usage: Benchmarks [--quick] [--sweep] [--filter NAME] [--list] [--scratch DIRECTORY] [--label TEXT] [--json FILE]
          --quick    fewer rounds, at most 10,000 entries, a soak of 5 s
          --sweep    adds costs against body size (to 50 MB) and entry count (to 1,000,000)
          --filter   groups of rows whose name contains NAME
          --list     names the groups
          --scratch  a directory on the file system to measure
          --label    which copy of the library this is, for the set-up
          --json     writes one object for each row
        """

    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--quick": isQuick = true
            case "--sweep": sweeps = true
            case "--list": lists = true
            case "--json", "--filter", "--scratch", "--label":
                guard let value = rest.popFirst() else { return nil }
                switch argument {
                case "--json": jsonPath = value
                case "--filter": filter = value
                case "--scratch": scratch = value
                default: label = value
                }
            default: return nil
            }
        }
    }

    func includes(_ group: String) -> Bool { filter.map { group.contains($0) } ?? true }

    var manyEntries: Int { isQuick ? 10_000 : 100_000 }
    /// The number of rounds; a quick run makes a fifth of them.
    func rounds(_ count: Int) -> Int { isQuick ? max(5, count / 5) : count }
}
