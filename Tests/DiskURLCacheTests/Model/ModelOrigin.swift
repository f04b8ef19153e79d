import Foundation

@testable import DiskURLCache

/// The origin of a script: resources with versions, each with its own `Cache-Control`.
///
/// What is answered is decided when the request arrives; where the path is held, the answer is sent when it is
/// released.
final class ModelOrigin: Sendable {
    private struct Resource {
        let varies: Bool
        let hasTag: Bool
        var version = 1
        var control = ModelControl()
        var gate: Gate?
        /// Fails the next request.
        var failure: Failure?
    }

    enum Failure: Sendable, CaseIterable {
        /// By a 500, by no answer at all, by half a body.
        case status, silence, cut
    }

    private let model: ReferenceModel
    private let resources: Mutex<[String: Resource]>
    /// Called when the answer to a load is held.
    private let onHold: @Sendable (_ load: Int) -> Void

    init(_ model: ReferenceModel, onHold: @escaping @Sendable (Int) -> Void) {
        self.model = model
        self.onHold = onHold
        resources = Mutex([
            "/a": Resource(varies: false, hasTag: true), "/b": Resource(varies: true, hasTag: true),
            "/c": Resource(varies: false, hasTag: false),
            Self.redirecting: Resource(varies: false, hasTag: false),
        ])
    }

    static let paths = ["/a", "/b", "/c", redirecting]
    /// Leads to one of the others, by its version.
    static let redirecting = "/r"

    private static func target(of version: Int) -> String { paths[version % 3] }

    func edit(_ path: String, _ control: ModelControl, isNewVersion: Bool) {
        resources.withLock { resources in
            if isNewVersion { resources[path]?.version += 1 }
            resources[path]?.control = control
        }
    }

    /// A redirect is stored, or leads elsewhere by now: its target may be any path.
    func isHeld(_ path: String) -> Bool {
        resources.withLock { resources in
            resources.contains { ($0.key == path || path == Self.redirecting) && $0.value.gate != nil }
        }
    }

    func hold(_ path: String) {
        resources.withLock { resources in
            if resources[path]?.gate == nil { resources[path]?.gate = Gate() }
        }
    }

    func release(_ path: String) {
        let gate = resources.withLock { resources in
            let gate = resources[path]?.gate
            resources[path]?.gate = nil
            return gate
        }
        gate?.open()
    }

    func failNext(_ path: String, _ failure: Failure) {
        resources.withLock { $0[path]?.failure = failure }
    }

    /// What an app that stores by hand would have from the origin now.
    func item(byHand request: ModelRequest, process: Int) -> ModelItem {
        let resource = resources.withLock { $0[request.path] }
        return model.add { number in
            ModelItem(
                number: number, kind: .byHand, request: request, varies: resource?.varies == true,
                version: resource?.version ?? 0, tag: resource.flatMap { tag(of: $0, request) },
                control: ModelControl(),
                asker: nil, process: process)
        }
    }

    private func tag(of resource: Resource, _ request: ModelRequest) -> String? {
        guard resource.hasTag else { return nil }
        let text = "\(request.path.dropFirst())\(resource.version)\(request.user ?? "")"
        return resource.varies ? "\"\(text)\(request.language)\"" : "\"\(text)\""
    }

    func answer(_ message: OriginRequest) -> OriginResponse {
        let request = ModelRequest(
            path: message.path, user: message.fields["Authorization"],
            language: message.fields["Accept-Language"] ?? "")
        let load = message.fields["X-Load"].flatMap { Int($0) }
        return resources.withLock { resources in
            guard var resource = resources[message.path] else { return .status(404, "Not Found") }
            defer { resources[message.path] = resource }
            if let failure = resource.failure {
                resource.failure = nil
                model.change { state in
                    state.failedPaths.append((message.path, state.tick()))
                    state.note("the origin fails load \(load ?? 0) of \(message.path) on purpose: \(failure)")
                }
                var response = OriginResponse.status(500, "Internal Server Error")
                if failure == .silence { response.ending = .noResponse }
                if failure == .cut, message.method == "GET" {
                    // The head and the first bytes of an answer like others: nothing of it may be served.
                    response = representation(of: resource, request, message, load)
                    response.ending = .cutBody(after: 20)
                }
                return response
            }
            guard message.method == "GET" || message.method == "HEAD" else {
                resource.version += 1
                model.change { state in
                    let time = state.tick()
                    if let load { state.invalidations[load] = (message.path, time) }
                    state.note("the origin takes \(message.method) of \(message.path) by load \(load ?? 0)")
                }
                return OriginResponse(status: 204, reason: "No Content", sendsDate: false)
            }
            return representation(of: resource, request, message, load)
        }
    }

    private func representation(
        of resource: Resource, _ request: ModelRequest, _ message: OriginRequest, _ load: Int?
    ) -> OriginResponse {
        let tag = tag(of: resource, request)
        let isRedirect = message.path == Self.redirecting
        let isKnown = tag.map { message.fields["If-None-Match"]?.contains($0) == true } ?? false
        let kind: ModelItem.Kind
        if isKnown {
            kind = .notModified
        } else if message.method == "HEAD" {
            kind = .head
        } else {
            kind = isRedirect ? .redirect : .whole
        }
        let item = model.add { number in
            ModelItem(
                number: number, kind: kind, request: request, varies: resource.varies, version: resource.version,
                tag: tag,
                control: resource.control,
                asker: load, target: isRedirect ? Self.target(of: resource.version) : nil)
        }
        var response = OriginResponse(sendsDate: false)
        for (name, value) in item.fields { response.fields.append(name, value) }
        response.fields.append("Date", HTTPDate.format(Date(timeIntervalSince1970: item.bornSeconds)))
        if isRedirect {
            response.status = item.status
            response.reason = "Elsewhere"
        }
        if isKnown {
            response.status = 304
            response.reason = "Not Modified"
        } else {
            response.body = item.body
        }
        let (gate, path) = (resource.gate, message.path)
        response.beforeHead = { [model, onHold] in
            if let gate {
                onHold(load ?? 0)
                gate.wait()
            }
            model.change { state in
                let time = state.tick()
                state.items[item.number]?.answered = time
                state.note("the origin answers load \(load ?? 0) of \(path) by item \(item.number)")
            }
        }
        return response
    }
}
