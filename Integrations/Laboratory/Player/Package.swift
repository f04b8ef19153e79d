// swift-tools-version: 6.3

import PackageDescription

let package = Package(
    name: "Player",
    dependencies: [.package(name: "DiskURLCache", path: "../../..")],
    targets: [.executableTarget(name: "Player", dependencies: ["DiskURLCache"])],
    swiftLanguageModes: [.v6]
)
