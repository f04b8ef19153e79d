import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Short forms that only tests use.

extension DiskURLCache.KeyPolicy {
    /// The key of a request; nil if it has none.
    func key(for request: URLRequest) -> RequestKey? { decision(for: DiskURLCache.Request(request)).key }
}

extension HeaderFields {
    /// All values of `name`, unchanged and in order.
    func values(of name: String) -> [String] {
        fields.filter { $0.name.equalsIgnoringASCIICase(name) }.map(\.value)
    }
}

extension VaryKey {
    /// The key of a response with this `Vary` field.
    init(_ vary: String, request: HeaderFields, salt: CredentialSalt? = nil) {
        self.init(response: ["Vary": vary], request: RequestFacts(method: "GET", fields: request, salt: salt))
    }
}

extension AsyncStream<DiskURLCache.Event> {
    /// What the next event of a load says; nil, and an issue, if there is none.
    func report(sourceLocation: SourceLocation = #_sourceLocation) async -> DiskURLCache.Report? {
        await first("the report of a load", sourceLocation: sourceLocation) {
            if case .load(let report) = $0 { report } else { nil }
        }
    }

    /// Waits for a response that is stored.
    func stored(sourceLocation: SourceLocation = #_sourceLocation) async {
        _ = await first("the event of a stored response", sourceLocation: sourceLocation) {
            if case .stored = $0 { true } else { nil }
        }
    }

    /// The next response that is not stored.
    func notStored(
        sourceLocation: SourceLocation = #_sourceLocation
    ) async -> (url: URL?, reason: DiskURLCache.Reason)? {
        await first("the event of a response that is not stored", sourceLocation: sourceLocation) {
            if case .notStored(let url, let reason) = $0 { (url, reason) } else { nil }
        }
    }
}

extension EntityTagCondition {
    var tags: [EntityTag] { if case .tags(let tags) = self { tags } else { [] } }
}
