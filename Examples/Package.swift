// swift-tools-version: 6.3

import PackageDescription

// A package of its own, so that the library has no dependencies: FlyingFox is the origin server inside the examples.
// `swift run` builds only what a program needs. In this folder OpenSourceClient is a package of its own, and iOSApp is
// an Xcode project.
// For `explanation(for:)`.
let tools = Target.Dependency.product(name: "DiskURLCacheTools", package: "DiskURLCache")

let package = Package(
    name: "Examples",
    platforms: [.macOS(.v13)],
    products: [.library(name: "ExampleSupport", targets: ["ExampleSupport"])],
    dependencies: [
        .package(name: "DiskURLCache", path: ".."),
        .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        .target(name: "ExampleSupport", dependencies: ["DiskURLCache", "FlyingFox"]),
        .executableTarget(name: "QuickStart", dependencies: ["DiskURLCache", tools, "ExampleSupport"]),
        .executableTarget(name: "SignedAPI", dependencies: ["DiskURLCache", "ExampleSupport"]),
        .executableTarget(name: "StaleThenFresh", dependencies: ["DiskURLCache", "ExampleSupport"]),
        .executableTarget(name: "OfflineReader", dependencies: ["DiskURLCache", "ExampleSupport"]),
        .executableTarget(name: "AccountSwitch", dependencies: ["DiskURLCache", "ExampleSupport"]),
        // The recipes of the article, one file each, and a program that runs them.
        .executableTarget(name: "Recipes", dependencies: ["DiskURLCache", tools, "ExampleSupport"], path: "Recipes"),
        // A command-line tool with a cache: one file.
        .executableTarget(
            name: "Fetch",
            dependencies: [
                "DiskURLCache", tools, .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ], path: "Fetch"),
        // The samples of the article "Testing an app".
        .testTarget(
            name: "TestingAnAppTests",
            dependencies: ["DiskURLCache", .product(name: "DiskURLCacheTesting", package: "DiskURLCache")]),
        .executableTarget(
            name: "Fleet",
            dependencies: [
                "DiskURLCache", "ExampleSupport", .product(name: "FlyingSocks", package: "FlyingFox"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)
