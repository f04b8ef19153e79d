// swift-tools-version: 6.0

import PackageDescription

/// As in the package above.
let library = Context.environment["DISK_URL_CACHE"] ?? "../.."

// A package of its own, so that who uses CachingHTTPClient does not resolve Hummingbird.
let package = Package(
    name: "ServerExample",
    platforms: [.macOS(.v14)],
    dependencies: [
        library.contains("://")
            ? .package(url: library, branch: "main") : .package(name: "DiskURLCache", path: library),
        .package(name: "disk-url-cache-integrations", path: ".."),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    ],
    targets: [
        .executableTarget(
            name: "ServerExample",
            dependencies: [
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "CacheMetrics", package: "disk-url-cache-integrations"),
                .product(name: "CachingHTTPClient", package: "disk-url-cache-integrations"),
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "DiskURLCacheAdapters", package: "DiskURLCache"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "RedisStorage", package: "disk-url-cache-integrations"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
