// swift-tools-version: 6.0

import PackageDescription

let package = Package(
    name: "DiskURLCache",
    platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .watchOS(.v8), .visionOS(.v1), .macCatalyst(.v15)],
    products: [
        .library(name: "DiskURLCache", targets: ["DiskURLCache"]),
        .library(name: "DiskURLCacheTesting", targets: ["DiskURLCacheTesting"]),
    ],
    targets: [
        .target(name: "DiskURLCache", resources: [.copy("PrivacyInfo.xcprivacy")]),
        // For the tests of an app: a cache in memory, a clock to set, an origin to script.
        .target(name: "DiskURLCacheTesting", dependencies: ["DiskURLCache"]),
        .testTarget(
            name: "DiskURLCacheTests", dependencies: ["DiskURLCache", "DiskURLCacheTesting"], exclude: ["Fixtures"]),
    ],
    swiftLanguageModes: [.v6]
)
