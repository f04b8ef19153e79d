// swift-tools-version: 6.3

import PackageDescription

// The cache behind a client of its own, OpenCombine: a package of its own, so that the other examples do not fetch it.
let package = Package(
    name: "OpenSourceClient",
    platforms: [.macOS(.v13)],
    dependencies: [
        .package(name: "Examples", path: ".."),
        .package(name: "DiskURLCache", path: "../.."),
        .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
    ],
    targets: [
        .executableTarget(
            name: "OpenSourceClient",
            dependencies: [
                "DiskURLCache", .product(name: "ExampleSupport", package: "Examples"),
                .product(name: "OpenCombine", package: "OpenCombine"),
                .product(name: "OpenCombineFoundation", package: "OpenCombine"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
