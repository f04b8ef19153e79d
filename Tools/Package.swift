// swift-tools-version: 6.3

import PackageDescription

// The inspector `urlcache`: a package of its own, since it reads its command line with swift-argument-parser, and the
// library has no dependencies. `swift package urlcache` builds it.
let package = Package(
    name: "Tools",
    platforms: [.macOS(.v13)],
    products: [.executable(name: "urlcache", targets: ["urlcache"])],
    dependencies: [
        .package(name: "DiskURLCache", path: ".."),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
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
        // The commands, and the report in a browser.
        .testTarget(name: "URLCacheToolTests", dependencies: ["urlcache"]),
    ],
    swiftLanguageModes: [.v6]
)
