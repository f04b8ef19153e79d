import Foundation

/// One stored variant, whose body may still be on disk: what lookups find, and what decisions name. Lists of variants
/// begin with the most recent one. Immutable. A class, since it is copied often.
package final class StoredVariant: Sendable {
    /// The greatest number of variants of a key, in each layer. A further one replaces an old one: each lookup compares
    /// the variants with its request, and a server may name a field in `Vary` that no two requests have alike.
    package static let limit = 8

    package let metadata: EntryMetadata
    /// The HTTP facts. Of a response that is not HTTP, which no load uses, such that answer no request. A constant:
    /// decisions read nothing else of the metadata.
    package let response: StoredResponse
    /// The length of the stored, decoded body. `Content-Length` may say something else.
    package let bodyLength: Int
    package let layer: DiskURLCache.Layer
    /// The whole entry; nil if its body is not in memory.
    let entry: StoredEntry?
    /// Returns the whole entry; nil if the record is gone or damaged. May read the disk on the caller's thread.
    let load: @Sendable () -> StoredEntry?
    /// Opens and verifies the body in its file, instead of reading it into memory; nil if the file is gone or damaged.
    /// Reads the whole file once, on the caller's thread. Set only for bodies that are too large to be kept in memory.
    let open: (@Sendable () -> OpenBody?)?

    /// - Parameter entry: nil if the body was not read yet.
    package init(
        _ metadata: EntryMetadata, bodyLength: Int, from layer: DiskURLCache.Layer, entry: StoredEntry? = nil,
        open: (@Sendable () -> OpenBody?)? = nil, load: @escaping @Sendable () -> StoredEntry?
    ) {
        self.metadata = metadata
        response = metadata.http ?? .ofNoRequest
        self.bodyLength = bodyLength
        self.layer = layer
        self.entry = entry
        self.open = open
        self.load = load
    }

    /// A variant whose body is in memory.
    package convenience init(_ entry: StoredEntry, from layer: DiskURLCache.Layer) {
        self.init(entry.metadata, bodyLength: entry.body.count, from: layer, entry: entry) { entry }
    }

    /// A response as it would be found after it was stored, without its body.
    package convenience init(ifStored response: StoredResponse, at time: Date) {
        let metadata = EntryMetadata(response: .http(response), storedAt: time, placement: .memoryAndDisk)
        self.init(metadata, bodyLength: 0, from: .memory) { nil }
    }

    /// The same variant, with a different layer as its source.
    func from(_ layer: DiskURLCache.Layer) -> StoredVariant {
        StoredVariant(metadata, bodyLength: bodyLength, from: layer, entry: entry, open: open, load: load)
    }
}

extension StoredVariant: Equatable {
    /// The same as it was found: not one that is stored with the same head.
    package static func == (left: StoredVariant, right: StoredVariant) -> Bool { left === right }
}

extension StoredVariant {
    package var isHTTP: Bool { metadata.http != nil }

    /// The facts about age and reuse. An entry in memory keeps them from hit to hit.
    var reuseFacts: ReuseFacts { entry?.reuseFacts ?? ReuseFacts(response) }

    /// Whether the body still has the length for which the range was computed; in a shorter or longer body the range
    /// would mean different bytes.
    func canServe(_ presentation: Presentation, of length: Int) -> Bool {
        if case .range = presentation { length == bodyLength } else { true }
    }
}

extension StoredResponse {
    fileprivate static let ofNoRequest = StoredResponse(
        method: "", status: 0, fields: HeaderFields(), requestTime: .distantPast, responseTime: .distantPast,
        vary: .none)
}
