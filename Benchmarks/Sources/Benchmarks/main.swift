import Foundation

guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
    print(Options.usage)
    exit(64)
}
signal(SIGPIPE, SIG_IGN)
let report = Report(setup: Setup.describe(options))

// What makes files comes before what deletes many: see `Scratch.settle`.
let sections: [(String, (Report, Options, Scratch) throws -> Void)] = [
    ("memory", MemoryRows.run),
    ("threads", ThreadRows.run),
    ("session", SessionRows.run),
    ("store", StoreRows.run),
    ("miss", MissRows.run),
    ("disk hit", DiskHitRows.run),
    ("capacity", CapacityRows.run),
    ("open", OpenRows.run),
    ("space", SpaceRows.run),
    ("trace", TraceRows.run),
    ("sweep", SweepRows.run),
]
for (name, run) in sections where options.includes(name) {
    report.begin(name)
    let scratch = try Scratch(in: options.scratch)
    if !options.isQuick, ["store", "capacity"].contains(name) { try scratch.settle() }
    try run(report, options, scratch)
}
report.printSummary()
if let path = options.jsonPath { try report.write(to: path) }
