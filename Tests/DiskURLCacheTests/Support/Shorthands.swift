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

extension EntityTagCondition {
    var tags: [EntityTag] { if case .tags(let tags) = self { tags } else { [] } }
}
