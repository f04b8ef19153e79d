// swift-tools-version: 6.3

import PackageDescription

/// The library: what this variable names, or else the folder above, as in its repository. A folder, or a URL, which is
/// its branch `main`, or a URL with a version, such as `https://example.com/DiskURLCache#1.0.0`, which is that release
/// and later ones that fit.
let library = Context.environment["DISK_URL_CACHE"] ?? ".."

func dependency(on library: String) -> Package.Dependency {
    guard library.contains("://") else { return .package(name: "DiskURLCache", path: library) }
    let parts = library.split(separator: "#", maxSplits: 1).map(String.init)
    guard parts.count == 2, let version = Version(parts[1]) else { return .package(url: parts[0], branch: "main") }
    return .package(url: parts[0], from: version)
}

let package = Package(
    name: "disk-url-cache-integrations",
    platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .watchOS(.v9), .visionOS(.v1), .macCatalyst(.v15)],
    products: [
        .library(name: "CachingHTTPClient", targets: ["CachingHTTPClient"]),
        .library(name: "CacheMetrics", targets: ["CacheMetrics"]),
        .library(name: "RedisStorage", targets: ["RedisStorage"]),
    ],
    dependencies: [
        dependency(on: library),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.34.0"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-service-context", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .target(
            name: "CachingHTTPClient",
            dependencies: [
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "DiskURLCacheAdapters", package: "DiskURLCache"),
                .product(name: "DiskURLCacheTools", package: "DiskURLCache"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHPACK", package: "swift-nio-http2"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOFoundationCompat", package: "swift-nio"),
                .product(name: "NIOHTTPCompression", package: "swift-nio-extras"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceContextModule", package: "swift-service-context"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ]),
        .target(
            name: "CacheMetrics",
            dependencies: [
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]),
        .target(
            name: "RedisStorage",
            dependencies: [
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "DiskURLCacheAdapters", package: "DiskURLCache"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOFoundationCompat", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]),
        // An origin for tests and benchmark.
        .target(
            name: "LoopbackOrigin",
            dependencies: [
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]),
        .executableTarget(
            name: "Benchmark",
            dependencies: [
                "CachingHTTPClient", "LoopbackOrigin",
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ]),
        // The recipe for servers of the article "Recipes".
        .executableTarget(
            name: "Recipe",
            dependencies: [
                "CachingHTTPClient", "LoopbackOrigin", .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
            ]),
        // Measures memory, and is the process in which tests do.
        .executableTarget(
            name: "LargeBody",
            dependencies: [
                "CachingHTTPClient", "LoopbackOrigin",
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
            ]),
        // To which the engine of http-tests/cache-tests plays its suite.
        .executableTarget(
            name: "SuiteProxy",
            dependencies: [
                "CachingHTTPClient", "LoopbackOrigin",
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
            ]),
        // What the laboratory of differences plays our caches with.
        .executableTarget(
            name: "Player",
            dependencies: [
                "CachingHTTPClient",
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
            ], path: "Laboratory/Player/Sources/Player"),
        // One of the processes that a test of RedisStorage starts.
        .executableTarget(
            name: "RedisWorker",
            dependencies: ["RedisStorage", .product(name: "DiskURLCache", package: "DiskURLCache")]),
        .testTarget(
            name: "RedisStorageTests",
            dependencies: [
                "RedisStorage", "RedisWorker",
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "DiskURLCacheAdapters", package: "DiskURLCache"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ]),
        .testTarget(
            name: "CachingHTTPClientTests",
            dependencies: [
                "CachingHTTPClient", "LargeBody", "LoopbackOrigin",
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "DiskURLCacheAdapters", package: "DiskURLCache"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHPACK", package: "swift-nio-http2"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
            ]),
        .testTarget(
            name: "CacheMetricsTests",
            dependencies: [
                "CacheMetrics",
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "DiskURLCacheTools", package: "DiskURLCache"),
                .product(name: "DiskURLCacheAdapters", package: "DiskURLCache"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
            ]),
        // The rows of the library's own tests (`Rows` and `Shared` are links to them), played through
        // CachingHTTPClient.
        .testTarget(
            name: "ConformanceTests",
            dependencies: [
                "CachingHTTPClient",
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "DiskURLCacheTesting", package: "DiskURLCache"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)

// A server of Hummingbird, which is resolved only if somebody wants to see it: `SERVER_EXAMPLE=1 swift run
// ServerExample`.
if Context.environment["SERVER_EXAMPLE"] == "1" {
    package.platforms = [.macOS(.v14)]
    package.dependencies.append(.package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0"))
    package.targets.append(
        .executableTarget(
            name: "ServerExample",
            dependencies: [
                "CacheMetrics", "CachingHTTPClient", "RedisStorage",
                .product(name: "DiskURLCache", package: "DiskURLCache"),
                .product(name: "DiskURLCacheAdapters", package: "DiskURLCache"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]))
}
