// swift-tools-version: 6.0

import PackageDescription

// For building the documentation only, so that the library's own manifest has no dependencies:
//     swift package --package-path Documentation generate-documentation --target DiskURLCache --warnings-as-errors
// Sources/DiskURLCache is a link to the library's sources.
let package = Package(
    name: "Documentation",
    platforms: [.iOS(.v15), .macOS(.v12), .tvOS(.v15), .watchOS(.v8), .visionOS(.v1), .macCatalyst(.v15)],
    products: [.library(name: "DiskURLCache", targets: ["DiskURLCache"])],
    dependencies: [.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.4.0")],
    targets: [.target(name: "DiskURLCache", exclude: ["PrivacyInfo.xcprivacy"])],
    swiftLanguageModes: [.v6]
)
