// swift-tools-version: 6.0

import PackageDescription

// A package of its own, so that the library has no dependencies: FlyingFox is the origin server inside the examples.
let package = Package(
    name: "Examples",
    platforms: [.macOS(.v13)],
    dependencies: [
        .package(name: "DiskURLCache", path: ".."),
        .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
    ],
    targets: [
        .target(name: "ExampleSupport", dependencies: ["FlyingFox"]),
        .executableTarget(name: "QuickStart", dependencies: ["DiskURLCache", "ExampleSupport"]),
    ],
    swiftLanguageModes: [.v6]
)
