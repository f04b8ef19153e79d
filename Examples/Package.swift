// swift-tools-version: 6.0

import PackageDescription

// A package of its own, so that the library has no dependencies: FlyingFox is the origin server inside the examples,
// OpenCombine the client that OpenSourceClient puts the cache behind, swift-argument-parser reads the command line of
// the inspector `urlcache`. `swift run` builds only what a program needs.
let package = Package(
    name: "Examples",
    platforms: [.macOS(.v13)],
    dependencies: [
        .package(name: "DiskURLCache", path: ".."),
        .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
        .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        .target(name: "ExampleSupport", dependencies: ["DiskURLCache", "FlyingFox"]),
        .executableTarget(name: "QuickStart", dependencies: ["DiskURLCache", "ExampleSupport"]),
        .executableTarget(name: "SignedAPI", dependencies: ["DiskURLCache", "ExampleSupport"]),
        .executableTarget(name: "StaleThenFresh", dependencies: ["DiskURLCache", "ExampleSupport"]),
        .executableTarget(name: "OfflineReader", dependencies: ["DiskURLCache", "ExampleSupport"]),
        .executableTarget(name: "AccountSwitch", dependencies: ["DiskURLCache", "ExampleSupport"]),
        // The recipes of the article, one file each, and a program that runs them.
        .executableTarget(name: "Recipes", dependencies: ["DiskURLCache", "ExampleSupport"], path: "Recipes"),
        // The samples of the article "Testing an app".
        .testTarget(
            name: "TestingAnAppTests",
            dependencies: ["DiskURLCache", .product(name: "DiskURLCacheTesting", package: "DiskURLCache")]),
        // The commands of the inspector, and its report in a browser.
        .testTarget(name: "URLCacheToolTests", dependencies: ["urlcache"]),
        .executableTarget(
            name: "OpenSourceClient",
            dependencies: [
                "DiskURLCache", "ExampleSupport",
                .product(name: "OpenCombine", package: "OpenCombine"),
                .product(name: "OpenCombineFoundation", package: "OpenCombine"),
            ]),
        .executableTarget(
            name: "Fleet",
            dependencies: [
                "DiskURLCache", "ExampleSupport", .product(name: "FlyingSocks", package: "FlyingFox"),
            ]),
        .executableTarget(
            name: "urlcache",
            dependencies: [
                "DiskURLCache", .product(name: "DiskURLCacheTools", package: "DiskURLCache"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            // The report's page, compiled in: the tool is one file.
            resources: [
                .embedInCode("Page/page.html"), .embedInCode("Page/page.css"), .embedInCode("Page/page.js"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)
