import Foundation

guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
    print(Options.usage)
    exit(64)
}
signal(SIGPIPE, SIG_IGN)
let report = Report(setup: Setup.describe(options))

let sections: [(String, (Report, Options, Scratch) throws -> Void)] = [
    ("memory", MemoryRows.run),
    ("threads", ThreadRows.run),
    ("disk hit", DiskHitRows.run),
    ("miss", MissRows.run),
    ("store", StoreRows.run),
    ("capacity", CapacityRows.run),
    ("open", OpenRows.run),
    ("session", SessionRows.run),
    ("space", SpaceRows.run),
    ("trace", TraceRows.run),
    ("sweep", SweepRows.run),
]
for (name, run) in sections where options.includes(name) {
    report.begin(name)
    let scratch = try Scratch(in: options.scratch)
    try run(report, options, scratch)
}
report.printSummary()
if let path = options.jsonPath { try report.write(to: path) }
