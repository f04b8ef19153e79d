import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// How an app loads.
enum MatrixWay: String, CaseIterable, Sendable {
    case handler, async, delegate
    /// `data(for:delegate:)`.
    case taskDelegate = "task delegate"
    /// `data(for:)` of the cache itself, which is held against `async` without a cache.
    case direct

    static let ofSessions: [MatrixWay] = [.handler, .async, .delegate, .taskDelegate]
}

/// Writes down what a delegate hears, in order; pieces of a body count once.
final class MatrixDelegate: NSObject, URLSessionDataDelegate, Sendable {
    private struct Log {
        var events: [String] = []
        var data = Data()
        var response: URLResponse?
        var error: (any Error)?
        var isOver = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let logs = Guarded<[Int: Log]>([:])

    private func note(_ task: URLSessionTask, _ event: String, _ change: (inout Log) -> Void = { _ in }) {
        let waiter = logs.withLock { logs in
            var log = logs[task.taskIdentifier, default: Log()]
            if log.events.last != event { log.events.append(event) }
            change(&log)
            let waiter = log.isOver ? log.waiter : nil
            if log.isOver { log.waiter = nil }
            logs[task.taskIdentifier] = log
            return waiter
        }
        waiter?.resume()
    }

    /// Resumes the task and returns once it has ended.
    func run(_ task: URLSessionTask) async -> (data: Data, response: URLResponse?, error: (any Error)?) {
        await withCheckedContinuation { continuation in
            logs.withLock { $0[task.taskIdentifier, default: Log()].waiter = continuation }
            task.resume()
        }
        let log = logs.withLock { $0[task.taskIdentifier] } ?? Log()
        return (log.data, log.response, log.error)
    }

    /// Of the task, or of the only one.
    func events(of task: URLSessionTask? = nil) -> [String] {
        logs.withLock { logs in (task.map { logs[$0.taskIdentifier] } ?? logs.values.first)?.events ?? [] }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note(dataTask, "response \((response as? HTTPURLResponse)?.statusCode ?? 0)") { $0.response = response }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note(dataTask, "data") { $0.data.append(data) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytes: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        note(task, "sent \(totalBytesSent)")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note(task, error == nil ? "end" : "failure") { ($0.error, $0.isOver) = (error, true) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        note(
            task,
            "redirect \(response.statusCode) by \(response.url?.absoluteString ?? "") to \(request.httpMethod ?? "") \(request.url?.absoluteString ?? "")"
        )
        completionHandler(request)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note(task, "challenge")
        completionHandler(.performDefaultHandling, nil)
    }
}

/// A session of one way, with its delegate.
final class MatrixSession: Sendable {
    let session: URLSession
    private let delegate = MatrixDelegate()

    init(
        _ way: MatrixWay,
        _ make: (URLSessionConfiguration, (any URLSessionDelegate)?) throws -> URLSession
    ) rethrows {
        let configuration = URLSessionConfiguration.ephemeral.patient
        configuration.urlCache = nil
        session = try make(configuration, way == .delegate ? delegate : nil)
    }

    /// A session as Foundation makes it.
    static func stock(_ way: MatrixWay) -> MatrixSession {
        MatrixSession(way) { URLSession(configuration: $0, delegate: $1, delegateQueue: nil) }
    }

    deinit {
        session.invalidateAndCancel()
    }

    func load(_ request: URLRequest, _ way: MatrixWay, _ cache: DiskURLCache?) async -> MatrixOutcome {
        switch way {
        case .handler:
            let tasks = Guarded<URLSessionDataTask?>(nil)
            let (data, response, error) = await withCheckedContinuation { continuation in
                let task = session.dataTask(with: request) { continuation.resume(returning: ($0, $1, $2)) }
                tasks.withLock { $0 = task }
                task.resume()
            }
            return Self.outcome(data, response, error, task: tasks.withLock { $0 })
        case .async:
            do {
                let (data, response) = try await session.data(for: request)
                return Self.outcome(data, response, nil)
            } catch {
                return Self.outcome(nil, nil, error)
            }
        case .delegate:
            let task = session.dataTask(with: request)
            let (data, response, error) = await delegate.run(task)
            var outcome = Self.outcome(data, response ?? task.response, error, task: task)
            outcome["events"] = delegate.events(of: task).joined(separator: ", ")
            return outcome
        case .taskDelegate:
            let delegate = MatrixDelegate()
            var outcome: MatrixOutcome
            do {
                let (data, response) = try await session.data(for: request, delegate: delegate)
                outcome = Self.outcome(data, response, nil)
            } catch {
                outcome = Self.outcome(nil, nil, error)
            }
            // The caller goes on before the queue of callbacks is empty.
            await withCheckedContinuation { continuation in
                session.delegateQueue.addBarrierBlock { continuation.resume() }
            }
            outcome["events"] = delegate.events().joined(separator: ", ")
            return outcome
        case .direct:
            guard let cache else { return await load(request, .async, nil) }
            do {
                let answer = try await cache.data(for: request)
                return Self.outcome(answer.data, answer.response, nil)
            } catch {
                return Self.outcome(nil, nil, error)
            }
        }
    }

    private static func outcome(
        _ data: Data?, _ response: URLResponse?, _ error: (any Error)?, task: URLSessionTask? = nil
    ) -> MatrixOutcome {
        var outcome: MatrixOutcome = [:]
        if let task { outcome["counts"] = "\(task.countOfBytesReceived) of \(task.countOfBytesExpectedToReceive)" }
        if let error {
            let error = error as NSError
            outcome["error"] = "\(error.domain) \(error.code)"
            outcome["error url"] = (error.userInfo[NSURLErrorFailingURLErrorKey] as? URL)?.absoluteString
            outcome["error url string"] = error.userInfo["NSErrorFailingURLStringKey"] as? String
            outcome["error description"] = error.userInfo[NSLocalizedDescriptionKey] as? String
            return outcome
        }
        guard let http = response as? HTTPURLResponse else { return outcome }
        outcome["url"] = http.url?.absoluteString
        outcome["status"] = String(http.statusCode)
        outcome["type"] =
            "\(http.mimeType ?? "none"), \(http.textEncodingName ?? "none"), \(http.expectedContentLength)"
        let body = data ?? Data()
        outcome["body"] =
            body.count > 100 ? "\(body.count) bytes, \(hash(body))" : String(decoding: body, as: UTF8.self)
        // Foundation on Linux may have two spellings of a name.
        for (name, value) in http.allHeaderFields.map({ ("\($0)", "\($1)") }).sorted(by: { $0.0 < $1.0 }) {
            outcome["field \(name.lowercased())", default: ""] += "\(name): \(value) "
        }
        return outcome
    }

    /// `Data.hashValue` looks at the beginning only.
    private static func hash(_ body: Data) -> Int {
        var hasher = Hasher()
        body.withUnsafeBytes { hasher.combine(bytes: $0) }
        return hasher.finalize()
    }
}
