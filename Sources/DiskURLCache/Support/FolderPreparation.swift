import Foundation

/// Gives a cache's folder what only Apple platforms have: no backup, and a protection class, which new files take from the
/// folder that they are made in. On the maintenance queue.
///
/// The operations are closures, so that what is done with them is tested everywhere.
struct FolderPreparation: Sendable {
    /// The class of a file or folder; gives nil where that cannot be told. Nil on macOS, which has no classes.
    var protection: (@Sendable (_ path: String) -> CacheFileProtection?)?
    var setProtection: @Sendable (_ path: String, CacheFileProtection) -> Void
    /// Names in a folder.
    var names: @Sendable (_ path: String) -> [String]
    var excludeFromBackup: @Sendable (_ path: String) -> Void

    /// - Parameters:
    ///   - folders: the directory, then folders in it that hold files.
    func callAsFunction(_ folders: [String], protection wanted: CacheFileProtection) {
        guard let directory = folders.first else { return }
        excludeFromBackup(directory)
        guard let protection else { return }
        for folder in folders where protection(folder) != wanted {
            // First the folder, so that what is made meanwhile has the class already.
            setProtection(folder, wanted)
            for name in names(folder) {
                let path = folder + "/" + name
                if !folders.contains(path) { setProtection(path, wanted) }
            }
        }
    }

    /// Nil where files have no protection classes and there are no backups to be kept out of.
    static var current: FolderPreparation? {
        #if canImport(Darwin)
            var preparation = FolderPreparation(
                protection: { path in
                    let value = try? FileManager.default.attributesOfItem(atPath: path)[.protectionKey]
                    return CacheFileProtection(value as? FileProtectionType)
                },
                setProtection: { path, wanted in
                    try? FileManager.default.setAttributes([.protectionKey: wanted.attribute], ofItemAtPath: path)
                },
                names: { (try? FileManager.default.contentsOfDirectory(atPath: $0)) ?? [] },
                excludeFromBackup: { path in
                    var values = URLResourceValues()
                    values.isExcludedFromBackup = true
                    var url = URL(fileURLWithPath: path, isDirectory: true)
                    try? url.setResourceValues(values)
                })
            #if os(macOS)
                preparation.protection = nil
            #endif
            return preparation
        #else
            return nil
        #endif
    }
}
