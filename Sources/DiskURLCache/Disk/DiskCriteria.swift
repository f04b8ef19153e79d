import Foundation

/// Which entries to remove: those for which every condition given holds.
struct DiskCriteria: Sendable, Hashable {
    var uriHash: UInt32?
    var hostHash: UInt32?
    var tag: String?
    /// Stored at or after this time.
    var storedAfter: Date?
    /// Stored before this time.
    var storedBefore: Date?
    /// Last used before this time.
    var accessedBefore: Date?
    /// Prefix of the response's URL; an entry whose URL is kept off the disk never matches.
    var urlPrefix: String?
}
