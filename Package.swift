// swift-tools-version: 6.0

import PackageDescription

let package = Package(
    name: "DiskURLCache",
    platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .watchOS(.v8), .visionOS(.v1), .macCatalyst(.v15)],
    products: [
        .library(name: "DiskURLCache", targets: ["DiskURLCache"])
    ],
    targets: [
        .target(name: "DiskURLCache", resources: [.copy("PrivacyInfo.xcprivacy")]),
        .testTarget(name: "DiskURLCacheTests", dependencies: ["DiskURLCache"], exclude: ["Fixtures"]),
    ],
    swiftLanguageModes: [.v6]
)
