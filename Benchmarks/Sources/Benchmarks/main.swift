import Foundation

signal(SIGPIPE, SIG_IGN)
let arguments = Array(CommandLine.arguments.dropFirst())
if arguments.first == Child.flag {
    try Child.run(Array(arguments.dropFirst()))
    exit(0)
}
let options = Options.parseOrExit()

// Rows that create files come before rows that delete many: see `Scratch.settle`.
let sections: [(name: String, groups: [Group])] = [
    ("memory", MemoryRows.groups),
    ("threads", ThreadRows.groups),
    ("session", SessionRows.groups),
    ("first load", FirstLoadRows.groups),
    ("passed through", PassThroughRows.groups),
    ("peak memory", PeakMemoryRows.groups),
    ("store", StoreRows.groups),
    ("miss", MissRows.groups),
    ("disk hit", DiskHitRows.groups),
    ("capacity", CapacityRows.groups),
    ("open", OpenRows.groups),
    ("many", ManyRows.groups),
    ("space", SpaceRows.groups),
    ("trace", TraceRows.groups),
    ("policy", PolicyRows.groups),
    ("soak", SoakRows.groups),
    ("sweep", options.sweeps ? SweepRows.groups : []),
]
if options.lists {
    for section in sections {
        for group in section.groups { print("\(section.name): \(group.name)") }
    }
    exit(0)
}
let chosen = sections.map { section in
    (section, section.groups.filter { options.includes("\(section.name): \($0.name)") })
}.filter { !$0.1.isEmpty }
guard !chosen.isEmpty else {
    FileHandle.standardError.write(Data("No group has such a name: --list prints all.\n".utf8))
    exit(1)
}
let report = Report(setup: Setup.describe(options))
for (section, groups) in chosen {
    report.begin(section.name)
    let scratch = try Scratch(in: options.scratch)
    if !options.isQuick, ["store", "capacity"].contains(section.name) { try scratch.settle() }
    for group in groups {
        // If a group fails, the rows after it are still measured.
        do { try group.run(report, options, scratch) } catch { report.fail(group.name, error) }
    }
}
report.printSummary()
if let path = options.jsonPath { try report.write(to: path) }
exit(report.failures.isEmpty ? 0 : 1)
