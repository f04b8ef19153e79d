import Foundation

#if canImport(Darwin)
    import os
#endif

/// Reports problems to developers who do not listen to events: to the unified log on Apple platforms, to standard error
/// elsewhere.
enum SystemLog {
    /// - Parameter text: a sentence without anything that could identify a user.
    static func warn(_ text: String) {
        #if canImport(Darwin)
            Logger(subsystem: "DiskURLCache", category: "DiskURLCache").error("\(text, privacy: .public)")
        #else
            FileHandle.standardError.write(Data("DiskURLCache: \(text)\n".utf8))
        #endif
    }
}
