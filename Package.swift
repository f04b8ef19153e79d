// swift-tools-version: 6.3

import PackageDescription

let package = Package(
    name: "DiskURLCache",
    platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .watchOS(.v9), .visionOS(.v1), .macCatalyst(.v15)],
    products: [
        .library(name: "DiskURLCache", targets: ["DiskURLCache"]),
        .library(name: "DiskURLCacheAdapters", targets: ["DiskURLCacheAdapters"]),
        .library(name: "DiskURLCacheTools", targets: ["DiskURLCacheTools"]),
        .library(name: "DiskURLCacheTesting", targets: ["DiskURLCacheTesting"]),
        .plugin(name: "URLCachePlugin", targets: ["URLCachePlugin"]),
    ],
    targets: [
        .target(name: "DiskURLCache", resources: [.copy("PrivacyInfo.xcprivacy")]),
        // For HTTP clients that the cache is put in front of, and for a disk layer of an app's own.
        .target(name: "DiskURLCacheAdapters", dependencies: ["DiskURLCache"]),
        // For tools: looks into a cache's directory, and an event log.
        .target(name: "DiskURLCacheTools", dependencies: ["DiskURLCache"]),
        // For the tests of an app: a cache in memory, a clock to set, a disk to break, an origin to script, recorded
        // answers.
        .target(name: "DiskURLCacheTesting", dependencies: ["DiskURLCache", "DiskURLCacheAdapters"]),
        // `swift package urlcache why URL`, also in a package that depends on this one.
        .plugin(
            name: "URLCachePlugin",
            capability: .command(
                intent: .custom(verb: "urlcache", description: "Looks into the directory of a DiskURLCache."))),
        // What both test targets use; in no product.
        .target(
            name: "TestSupport", dependencies: ["DiskURLCache", "DiskURLCacheAdapters", "DiskURLCacheTesting"],
            path: "Tests/TestSupport"),
        .testTarget(
            name: "DiskURLCacheTests",
            dependencies: [
                "DiskURLCache", "DiskURLCacheAdapters", "DiskURLCacheTools", "DiskURLCacheTesting", "TestSupport",
            ],
            exclude: ["Fixtures"]),
        // The library as its users see it: without access to the package, only what is public can be named.
        .testTarget(
            name: "DiskURLCachePublicTests",
            dependencies: [
                "DiskURLCache", "DiskURLCacheAdapters", "DiskURLCacheTools", "DiskURLCacheTesting", "TestSupport",
            ],
            packageAccess: false),
    ],
    swiftLanguageModes: [.v6]
)
