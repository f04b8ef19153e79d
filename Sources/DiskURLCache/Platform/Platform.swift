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

    /// Gives the calling thread, which ends soon, a third of the time that others get where there is not enough for all. Not
    /// less: the maintenance queue waits for it. A failure only means that it gets as much.
    static func giveWayToOtherThreads() {
        #if canImport(Darwin)
            Thread.current.qualityOfService = .utility
        #elseif canImport(Glibc)
            // Zero is the calling thread: on Linux each has a priority of its own.
            setpriority(.init(PRIO_PROCESS.rawValue), 0, 5)
        #endif
    }

    /// Makes the cache's folder with what only Apple platforms have: no backup, and a protection class that new files
    /// inherit. A failure is told when the disk layer opens the folder.
    static func prepare(_ directory: URL, for configuration: DiskURLCache.Configuration) {
        #if canImport(Darwin)
            var attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o700]
            #if !os(macOS)
                attributes[.protectionKey] = configuration.fileProtection.attribute
            #endif
            try? FileManager.default.createDirectory(
                at: directory, withIntermediateDirectories: true, attributes: attributes)
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            var directory = directory
            try? directory.setResourceValues(values)
        #endif
    }
}

#if canImport(Darwin)
    extension DiskURLCache.FileProtection {
        fileprivate var attribute: FileProtectionType {
            switch self {
            case .none: .none
            case .untilFirstUnlock: .completeUntilFirstUserAuthentication
            case .unlessOpen: .completeUnlessOpen
            case .complete: .complete
            }
        }
    }
#endif
