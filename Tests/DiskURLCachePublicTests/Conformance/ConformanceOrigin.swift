import DiskURLCache
import Foundation

/// The origin of the conformance rows: answers each request as its row says, and remembers what it was asked.
final class ConformanceOrigin: Sendable {
    /// What the origin saw and sent for one request.
    struct Exchange: Sendable {
        /// The step that the client was at, from 1.
        var step: Int
        var method: String
        var requestFields: OriginFields
        /// The fields that must reach the client, combined by name.
        var checkedFields: [String: String]
    }

    private struct Play: Sendable {
        var row: ConformanceRow
        var clock: @Sendable () -> Date
        var exchanges: [Exchange] = []
        /// The fields sent for each step, by its index.
        var sent: [Int: OriginFields] = [:]

        /// What a condition of the given step, from 1, must name: the fields of the step before, or those that it
        /// would have been sent had it not been answered from the cache.
        func fieldsBefore(_ number: Int, now: Date) -> OriginFields? {
            guard number >= 2 else { return nil }
            return sent[number - 2]
                ?? OriginFields(
                    row.steps[number - 2].reply.fields.map {
                        OriginFields.Field(name: $0.name, value: $0.text(now: now, requestTarget: ""))
                    })
        }
    }

    private let plays: Guarded<[String: Play]>
    let server: OriginServer

    init() throws {
        let plays = Guarded<[String: Play]>([:])
        self.plays = plays
        server = try OriginServer { Self.answer($0, plays) }
    }

    /// Makes room for a row; the result names it in paths and is the default body.
    func begin(_ row: ConformanceRow, clock: @escaping @Sendable () -> Date) -> String {
        let token = UUID().uuidString.lowercased()
        plays.withLock { $0[token] = Play(row: row, clock: clock) }
        return token
    }

    func exchanges(_ token: String) -> [Exchange] {
        plays.withLock { $0[token]?.exchanges ?? [] }
    }

    // MARK: - Answering

    private static func answer(_ request: OriginRequest, _ plays: Guarded<[String: Play]>) -> OriginResponse {
        let segments = request.path.split(separator: "/")
        guard segments.count >= 2, let number = request.fields["Req-Num"].flatMap({ Int($0) }) else {
            return .status(404, "Not a row")
        }
        let token = String(segments[1])
        return plays.withLock { plays in
            guard var play = plays[token], play.row.steps.indices.contains(number - 1) else {
                return .status(409, "No such step")
            }
            defer { plays[token] = play }
            return answer(request, token: token, number: number, &play)
        }
    }

    private static func answer(
        _ request: OriginRequest, token: String, number: Int, _ play: inout Play
    ) -> OriginResponse {
        let step = play.row.steps[number - 1]
        let now = play.clock()
        var response = OriginResponse(sendsDate: false)
        response.status = status(step, request, before: play.fieldsBefore(number, now: now))
        response.reason = "Row"
        response.interim = step.reply.interim

        let rowFields = step.reply.fields.map {
            OriginFields.Field(name: $0.name, value: $0.text(now: now, requestTarget: request.target))
        }
        var fields: OriginFields = [
            "Server-Base-Url": request.target,
            "Server-Request-Count": String(play.exchanges.count + 1),
            "Client-Request-Count": String(number),
            "Server-Now": String(now.timeIntervalSince1970),
        ]
        for field in rowFields { fields.append(field.name, field.value) }
        if fields["Content-Type"] == nil { fields.append("Content-Type", "text/plain") }
        if fields["Date"] == nil { fields.append("Date", HTTPDateText.text(now)) }

        let checked = step.reply.fields.filter(\.isChecked).map { $0.name.lowercased() }
        play.sent[number - 1] = OriginFields(rowFields)
        play.exchanges.append(
            Exchange(
                step: number, method: request.method, requestFields: request.fields,
                checkedFields: Dictionary(
                    checked.map { ($0, fields[$0] ?? "") }, uniquingKeysWith: { first, _ in first })
            ))
        fields.append("Request-Numbers", play.exchanges.map { String($0.step) }.joined(separator: " "))

        response.fields = fields
        if response.status != 204, response.status != 304 {
            response.body = Data((step.reply.body ?? token).utf8)
        }
        if step.reply.disconnects { response.ending = .noResponse }
        return response
    }

    /// 999 tells that a conditional request was expected and did not come.
    private static func status(
        _ step: ConformanceStep, _ request: OriginRequest, before: OriginFields?
    ) -> Int {
        guard let source = step.expected.source, source.isValidated else { return step.reply.status ?? 200 }
        let date = before?.values(of: "Last-Modified").last
        let etag = before?.values(of: "ETag").last
        let isConditional =
            (date != nil && request.fields["If-Modified-Since"] == date)
            || (etag != nil && request.fields["If-None-Match"] == etag)
        return isConditional ? 304 : 999
    }
}
