// swift-tools-version: 6.3

import PackageDescription

// A package of its own, so that the library has no dependencies. SQLite comes from the system: `libsqlite3-dev` on
// Linux. `DISKURLCACHE_PATH` names another copy of the library, so that two versions are measured by the same rows.
let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v13)],
    dependencies: [
        .package(name: "DiskURLCache", path: Context.environment["DISKURLCACHE_PATH"] ?? ".."),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    ],
    targets: [
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
        .executableTarget(
            name: "Benchmarks",
            dependencies: [
                "DiskURLCache", "CSQLite", .product(name: "Histogram", package: "hdrhistogram-swift"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
        .systemLibrary(name: "CCallgrind"),
        .executableTarget(
            name: "Counts",
            dependencies: [
                "CCallgrind", "DiskURLCache", .product(name: "DiskURLCacheAdapters", package: "DiskURLCache"),
                .product(name: "DiskURLCacheTesting", package: "DiskURLCache"),
            ]),
        .executableTarget(name: "Plots"),
    ],
    swiftLanguageModes: [.v6]
)
