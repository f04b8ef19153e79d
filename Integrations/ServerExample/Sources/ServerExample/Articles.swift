import AsyncHTTPClient
import CachingHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// What the endpoint needs of a client: so it works with the cache and without it.
protocol UpstreamClient: Sendable {
    func get(_ url: String, deadline: NIODeadline, logger: Logger) async throws -> HTTPClientResponse
    func shutdown() async throws
}

extension HTTPClient: UpstreamClient {
    func get(_ url: String, deadline: NIODeadline, logger: Logger) async throws -> HTTPClientResponse {
        try await execute(HTTPClientRequest(url: url), deadline: deadline, logger: logger)
    }
}

extension CachingHTTPClient: UpstreamClient {
    func get(_ url: String, deadline: NIODeadline, logger: Logger) async throws -> HTTPClientResponse {
        try await execute(HTTPClientRequest(url: url), deadline: deadline, logger: logger)
    }
}

/// Answers with what the upstream says, within a time and up to a length.
///
/// Its users' cookies and credentials are not passed on: they would have to be part of the key.
struct Articles: Sendable {
    static let patience = Duration.seconds(2)
    static let longest = 1 << 20

    let upstream: String
    let client: any UpstreamClient

    func response(to id: String, logger: Logger) async throws -> Response {
        guard id.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) else { throw HTTPError(.notFound) }
        do {
            // The client's deadline is for the head only: an upstream that never ends a body would hold the request for ever.
            return try await within(Self.patience) { try await load(id, logger) }
        } catch let error where !Task.isCancelled {
            let failure = Self.answer(to: error)
            logger.warning("\(failure.body ?? "")", metadata: ["article": "\(id)", "error": "\(error)"])
            throw failure
        }
    }

    private func load(_ id: String, _ logger: Logger) async throws -> Response {
        let answer = try await client.get(
            "\(upstream)/articles/\(id)", deadline: .now() + .seconds(Self.patience.components.seconds), logger: logger)
        guard answer.status == .ok else { throw Refusal(status: Int(answer.status.code)) }
        let body = try await answer.body.collect(upTo: Self.longest)
        var fields: HTTPFields = [.contentType: "application/json"]
        if let name = HTTPField.Name("Cache-Status"), let status = answer.headers.first(name: name.rawName) {
            fields[name] = status
        }
        return Response(status: .ok, headers: fields, body: .init(byteBuffer: body))
    }

    private struct Refusal: Error {
        let status: Int
    }

    private static func answer(to error: any Error) -> HTTPError {
        switch error {
        case let refusal as Refusal where refusal.status == 404:
            HTTPError(.notFound, message: "There is no such article.")
        case let refusal as Refusal: HTTPError(.badGateway, message: "The upstream answered \(refusal.status).")
        case _ where error is TooLate || error as? HTTPClientError == .deadlineExceeded:
            HTTPError(.gatewayTimeout, message: "The upstream took longer than \(patience).")
        case is NIOTooManyBytesError:
            HTTPError(.badGateway, message: "The upstream sent more than \(longest >> 20) MB.")
        default: HTTPError(.badGateway, message: "The upstream's answer was broken.")
        }
    }
}

struct TooLate: Error {}

/// Throws `TooLate` where the work takes longer.
func within<Value: Sendable>(
    _ duration: Duration, _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
        group.addTask(operation: work)
        group.addTask {
            try await Task.sleep(for: duration)
            throw TooLate()
        }
        defer { group.cancelAll() }
        guard let first = try await group.next() else { throw CancellationError() }
        return first
    }
}
