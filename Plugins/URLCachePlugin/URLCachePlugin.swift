import Foundation
import PackagePlugin

/// `swift package urlcache why https://example.com/feed.json`: the inspector of the package `Examples`, run from a
/// package that depends on this one.
///
/// The tool reads its command line with swift-argument-parser, and this package must not depend on that. So the plugin
/// builds and runs the package `Examples`, with the plugin's folder for the build. On macOS the build and the loads of
/// URLs need `--disable-sandbox`.
@main
struct URLCachePlugin: CommandPlugin {
    func performCommand(context: PluginContext, arguments: [String]) throws {
        guard let root = Self.sources(context.package) else { throw Problem("The package DiskURLCache was not found.") }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            [
                "swift", "run", "--package-path", root.appendingPathComponent("Examples").path,
                "--scratch-path", context.pluginWorkDirectoryURL.path, "urlcache",
            ] + arguments
        try process.run()
        process.waitUntilExit()
        if process.terminationStatus != 0 { throw Problem("urlcache exited with status \(process.terminationStatus).") }
    }

    /// The folder of this package: the package itself, or a dependency that has the product.
    private static func sources(_ package: Package) -> URL? {
        if package.products.contains(where: { $0.name == "DiskURLCache" }) { return package.directoryURL }
        return package.dependencies.lazy.compactMap { sources($0.package) }.first
    }
}

struct Problem: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
