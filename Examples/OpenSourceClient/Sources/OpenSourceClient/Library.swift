import Foundation
import OpenCombine
import OpenCombineFoundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

struct Book: Decodable, Sendable {
    let id: Int
    let title: String
}

/// An app's networking as it is commonly written with Combine: nothing in this file is about caching.
struct Library {
    private let baseURL: URL
    private let session = URLSession.shared

    init(_ baseURL: URL) {
        self.baseURL = baseURL
    }

    func books() async throws -> [Book] {
        let books = fetch([Int].self, "books")
            .flatMap { $0.publisher.setFailureType(to: (any Error).self) }
            .flatMap { fetch(Book.self, "books/\($0)") }
            .collect()
        for try await books in books.values {
            return books.sorted { $0.id < $1.id }
        }
        return []
    }

    private func fetch<Value: Decodable>(_ type: Value.Type, _ path: String) -> AnyPublisher<Value, any Error> {
        session.ocombine.dataTaskPublisher(for: baseURL.appendingPathComponent(path))
            .tryMap { data, response in
                guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
                return data
            }
            .decode(type: type, decoder: JSONDecoder())
            .eraseToAnyPublisher()
    }
}
