// swift-tools-version: 6.3

import PackageDescription

let package = Package(
    name: "Fuzzing",
    dependencies: [.package(name: "DiskURLCache", path: "../..")],
    targets: [.executableTarget(name: "Fuzz", dependencies: ["DiskURLCache"])],
    swiftLanguageModes: [.v6]
)
