#if canImport(Darwin)
    import Foundation
    import os

    // Never run by the project's tests: written from Apple's documentation. What values are by Apple's system;
    // `Linux/Values+Linux.swift` has the same names for Linux.

    extension Platform {
        static var current: Platform {
            #if os(watchOS)
                .watchOS
            #elseif os(macOS)
                .macOS
            #else
                Bundle.main.bundleURL.pathExtension == "appex" ? .appExtension : .iOS
            #endif
        }

        /// The folder given to the superclass, which has no capacity on disk. Nil would mean the app's default cache.
        static let superclassDirectory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "DiskURLCache.unused", isDirectory: true)
    }

    extension Mutex {
        typealias Lock = os_unfair_lock

        static func initialize(_ lock: UnsafeMutablePointer<Lock>) {}
        static func destroy(_ lock: UnsafeMutablePointer<Lock>) {}
        static func lock(_ lock: UnsafeMutablePointer<Lock>) { os_unfair_lock_lock(lock) }
        static func unlock(_ lock: UnsafeMutablePointer<Lock>) { os_unfair_lock_unlock(lock) }
    }

    extension SystemLog {
        static func write(_ text: String) {
            Logger(subsystem: "DiskURLCache", category: "DiskURLCache").error("\(text, privacy: .public)")
        }
    }

    extension SystemFiles {
        static var lockRequest: flock { flock(l_start: 0, l_len: 0, l_pid: 0, l_type: 0, l_whence: 0) }
    }

    extension stat {
        var modificationTime: timespec { st_mtimespec }
    }

    extension FolderPreparation {
        static var current: FolderPreparation? {
            var preparation = FolderPreparation(
                protection: { path in
                    let value = try? FileManager.default.attributesOfItem(atPath: path)[.protectionKey]
                    return value as? FileProtectionType
                },
                setProtection: { path, wanted in
                    let set: ()? = try? FileManager.default.setAttributes([.protectionKey: wanted], ofItemAtPath: path)
                    // A file that was removed meanwhile needs no class.
                    return set != nil || !FileManager.default.fileExists(atPath: path)
                },
                names: { (try? FileManager.default.contentsOfDirectory(atPath: $0)) ?? [] },
                excludeFromBackup: { path in
                    var values = URLResourceValues()
                    values.isExcludedFromBackup = true
                    var url = URL(fileURLWithPath: path, isDirectory: true)
                    try? url.setResourceValues(values)
                })
            if Platform.current == .macOS { preparation.protection = nil }
            return preparation
        }
    }

    /// Options are a `URLProtocol` property of the request.
    extension URLRequest {
        var mayCarryOptions: Bool { carriedOptions != nil }

        private static var propertyName: String { "DiskURLCache.options" }

        var carriedOptions: String? {
            get { URLProtocol.property(forKey: Self.propertyName, in: self) as? String }
            set {
                guard let request = (self as NSURLRequest).mutableCopy() as? NSMutableURLRequest else { return }
                if let newValue {
                    URLProtocol.setProperty(newValue, forKey: Self.propertyName, in: request)
                } else {
                    URLProtocol.removeProperty(forKey: Self.propertyName, in: request)
                }
                self = request as URLRequest
            }
        }
    }
#endif
