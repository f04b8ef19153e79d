import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Plays one row through a client and tells what was wrong.
struct ConformancePlayer {
    let row: ConformanceRow
    let origin: ConformanceOrigin
    let client: ConformanceClient

    /// The first expectation that did not hold; nil when the row passes.
    func play() async -> String? {
        let token = origin.begin(row, clock: client.now)
        var seen: [SeenResponse?] = []
        for index in row.steps.indices {
            let step = row.steps[index]
            do {
                let response = try await client.load(
                    request(index, token, previous: seen.last ?? nil), refreshes: step.refreshes)
                seen.append(response)
                if let problem = ResponseCheck(step: step, number: index + 1, token: token, seen: response).problem() {
                    return problem
                }
            } catch {
                guard step.expected.allowsError else { return "Request \(index + 1) failed: \(error)" }
                seen.append(nil)
            }
            await client.rest(pauses: step.pausesAfter)
        }
        return RequestCheck(row: row, seen: seen, exchanges: origin.exchanges(token)).problem()
    }

    private func request(_ index: Int, _ token: String, previous: SeenResponse?) -> URLRequest {
        let step = row.steps[index].request
        var request = URLRequest(url: origin.server.url("/test/\(token)\(step.pathSuffix)"))
        request.httpMethod = step.method
        if step.isReload { request.cachePolicy = .reloadRevalidatingCacheData }
        for field in step.fields {
            // A date sent in a request refers to the origin's clock as the response before told it.
            let value = field.text(now: previous?.serverNow ?? client.now(), requestTarget: "")
            request.addValue(value, forHTTPHeaderField: field.name)
        }
        request.setValue(String(index + 1), forHTTPHeaderField: "Req-Num")
        request.httpBody = step.body.map { Data($0.utf8) }
        return request
    }
}

/// A response as the client of a row got it.
struct SeenResponse: Sendable {
    var status: Int
    var body: Data
    private let response: HTTPURLResponse

    init(_ response: HTTPURLResponse, _ body: Data) {
        self.response = response
        self.body = body
        status = response.statusCode
    }

    subscript(name: String) -> String? { response.value(forHTTPHeaderField: name) }

    var serverNow: Date? {
        self["Server-Now"].flatMap(TimeInterval.init).map(Date.init(timeIntervalSince1970:))
    }
}
