import DiskURLCache
import Foundation

/// Compares one response with what its step expects.
struct ResponseCheck {
    let step: ConformanceStep
    let number: Int
    let token: String
    let seen: SeenResponse

    func problem() -> String? {
        retryProblem() ?? sourceProblem() ?? statusProblem() ?? fieldProblem() ?? bodyProblem()
    }

    private func retryProblem() -> String? {
        let numbers = seen["Request-Numbers"]?.split(separator: " ") ?? []
        return Set(numbers).count == numbers.count ? nil : "Request \(number) was sent twice: \(numbers)"
    }

    private func sourceProblem() -> String? {
        let count = seen["Server-Request-Count"].flatMap { Int($0) }
        switch step.expected.source {
        case .cached:
            if count == nil, seen.status == 304 { return nil }
            return count.map { $0 < number } ?? false ? nil : "Response \(number) does not come from the cache"
        case .notCached:
            return count == number ? nil : "Response \(number) comes from the cache"
        case .etagValidated, .lastModifiedValidated, nil:
            return nil
        }
    }

    private func statusProblem() -> String? {
        let expected: Int
        switch step.expected.status {
        case .any: return nil
        case .exactly(let status): expected = status
        case .asReplied:
            if seen.status == 999 { return "Request \(number) should have been conditional" }
            expected = step.reply.status ?? 200
        }
        return seen.status == expected ? nil : "Response \(number) has status \(seen.status), not \(expected)"
    }

    private func fieldProblem() -> String? {
        for field in step.expected.fields {
            let expected = field.text(now: seen.serverNow ?? Date(), requestTarget: "")
            if seen[field.name] != expected {
                return "Response \(number) has \(field.name): \(seen[field.name] ?? "none"), not \(expected)"
            }
        }
        for (name, limit) in step.expected.greater {
            let value = seen[name].flatMap { Int($0) }
            if value.map({ $0 > limit }) != true {
                return "Response \(number) has \(name): \(seen[name] ?? "none"), not greater than \(limit)"
            }
        }
        for name in step.expected.presentFields where seen[name] == nil {
            return "Response \(number) should have \(name)"
        }
        for name in step.expected.missingFields where seen[name] != nil {
            return "Response \(number) should not have \(name): \(seen[name] ?? "")"
        }
        return nil
    }

    private func bodyProblem() -> String? {
        let expected: String
        switch step.expected.body {
        case .any: return nil
        case .exactly(let body): expected = body
        case .asReplied:
            if step.reply.body == nil, [204, 304].contains(seen.status) || step.request.method == "HEAD" { return nil }
            expected = step.reply.body ?? token
        }
        let body = String(decoding: seen.body, as: UTF8.self)
        return body == expected ? nil : "Response \(number) has body \"\(body)\", not \"\(expected)\""
    }
}

/// Compares what the origin was asked with what the row expects, once the row is over.
struct RequestCheck {
    let row: ConformanceRow
    let seen: [SeenResponse?]
    let exchanges: [ConformanceOrigin.Exchange]

    func problem() -> String? {
        var remaining = exchanges[...]
        for (index, step) in row.steps.enumerated() where step.expected.source != .cached {
            if let problem = problem(step, number: index + 1, exchange: remaining.popFirst(), response: seen[index]) {
                return problem
            }
        }
        return nil
    }

    private func problem(
        _ step: ConformanceStep, number: Int, exchange: ConformanceOrigin.Exchange?, response: SeenResponse?
    ) -> String? {
        guard let exchange else {
            let expectsExchange = step.expected.source != nil || !step.expected.requestFields.isEmpty
            return expectsExchange ? "Request \(number) was not sent to the origin" : nil
        }
        switch step.expected.source {
        case .notCached where exchange.step != number:
            return "Response \(number) comes from the cache"
        case .etagValidated where exchange.requestFields["If-None-Match"] == nil:
            return "Request \(number) has no If-None-Match"
        case .lastModifiedValidated where exchange.requestFields["If-Modified-Since"] == nil:
            return "Request \(number) has no If-Modified-Since"
        default: break
        }
        for field in step.expected.requestFields {
            let expected = field.text(now: Date(), requestTarget: "")
            let value = exchange.requestFields[field.name]
            if value != expected { return "Request \(number) has \(field.name): \(value ?? "none"), not \(expected)" }
        }
        if let method = step.expected.requestMethod, exchange.method != method {
            return "Request \(number) has method \(exchange.method), not \(method)"
        }
        return response.flatMap { checkedFieldProblem(number, exchange, $0) }
    }

    /// What the origin sent reaches the client as it was, but for the fields that a client may lose.
    private func checkedFieldProblem(
        _ number: Int, _ exchange: ConformanceOrigin.Exchange, _ response: SeenResponse
    ) -> String? {
        for (name, value) in exchange.checkedFields where name != "date" && name != "set-cookie" {
            let received = response[name]
            if received.map(Self.normalised) != Self.normalised(value) {
                return "Response \(number) has \(name): \(received ?? "none"), not \(value)"
            }
        }
        return nil
    }

    /// Foundation joins several lines by a comma with or without a space.
    private static func normalised(_ value: String) -> String {
        value.split(separator: ",", omittingEmptySubsequences: false)
            .map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: ",")
    }
}
