// swift-tools-version: 6.0

import PackageDescription

// A package of its own, so that the library has no dependencies. SQLite comes from the system: `libsqlite3-dev` on Linux.
let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v13)],
    dependencies: [
        .package(name: "DiskURLCache", path: "..")
    ],
    targets: [
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
        .executableTarget(name: "Benchmarks", dependencies: ["DiskURLCache", "CSQLite"]),
        .executableTarget(name: "HotRow", dependencies: ["DiskURLCache"]),
        .executableTarget(name: "Plots"),
    ],
    swiftLanguageModes: [.v6]
)
