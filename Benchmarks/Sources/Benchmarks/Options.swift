import ArgumentParser
import Foundation

/// The command line.
struct Options: ParsableArguments {
    @Flag(name: .customLong("quick"), help: "Fewer rounds, at most 10,000 entries, a soak of 5 s.")
    var isQuick = false
    @Flag(name: .customLong("sweep"), help: "Adds costs by body size (to 50 MB) and by entry count (to 1,000,000).")
    var sweeps = false
    @Option(help: ArgumentHelp("Only groups of rows whose name contains this.", valueName: "name"))
    var filter: String?
    @Option(help: "The entries of the section \"many\"; 100,000 by default.")
    var entries: Int?
    @Flag(name: .customLong("list"), help: "Names the groups.")
    var lists = false
    @Option(help: ArgumentHelp("A directory on the file system to measure.", valueName: "directory"))
    var scratch = FileManager.default.temporaryDirectory.path
    @Option(help: ArgumentHelp("Which copy of the library this is, printed with the set-up.", valueName: "text"))
    var label: String?
    @Option(name: .customLong("json"), help: ArgumentHelp("Writes one object for each row.", valueName: "file"))
    var jsonPath: String?

    func includes(_ group: String) -> Bool { filter.map { group.contains($0) } ?? true }

    var manyEntries: Int { isQuick ? 10_000 : 100_000 }
    /// The number of rounds; a quick run makes a fifth of them.
    func rounds(_ count: Int) -> Int { isQuick ? max(5, count / 5) : count }
}
