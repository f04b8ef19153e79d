// swift-tools-version: 6.3

import PackageDescription

// For building the reference only, so that the library's own manifest has no dependencies:
//     Documentation/make-reference FOLDER
// Sources has links to the library's modules.
// The targets use `package` declarations of each other, so they are in one package here, too.
// Each is built after those before it: which of them it uses, the library's own manifest says.
let modules = ["DiskURLCache", "DiskURLCacheAdapters", "DiskURLCacheTools", "DiskURLCacheTesting"]

let package = Package(
    name: "DiskURLCache",
    platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .watchOS(.v9), .visionOS(.v1), .macCatalyst(.v15)],
    products: [.library(name: "DiskURLCache", targets: modules)],
    dependencies: [.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.4.0")],
    targets: [.target(name: "DiskURLCache", exclude: ["PrivacyInfo.xcprivacy"])]
        + modules.indices.dropFirst().map { index in
            .target(name: modules[index], dependencies: modules[..<index].map { .target(name: $0) })
        },
    swiftLanguageModes: [.v6]
)
