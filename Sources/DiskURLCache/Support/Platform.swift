import Foundation

/// What differs between Linux and Apple platforms, as far as it is not the loader's.
enum Platform {
    /// Where the superclass, which is given capacities of 0 and never asked for anything, may think that its folder is.
    static func unusedDiskPath(for directory: URL) -> String {
        #if canImport(Darwin)
            // A folder of its own name: nil would mean the app's default cache, which is not ours to touch.
            return "DiskURLCache.unused"
        #else
            // It creates the folder it is given with mode 0755, so it is given one that exists.
            return "/"
        #endif
    }
}
