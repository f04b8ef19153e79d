import ExampleSupport
import Foundation

enum WorkerOrder: Codable, Sendable {
    /// The way in which the worker loads from now on. With a directory it has a cache there.
    case open(directory: String?, tierPort: Int?, originPort: Int)
    /// Loads in this order, with a pause after each load. If the order says so, the worker reports when half is done.
    case load([String], pause: TimeInterval, timeout: TimeInterval, tellsHalf: Bool)
    case rush(String, callers: Int)
    /// Loads each path until it gets a second version. `since`: the time of the change at the origin.
    case watch([String], since: Date)
    case send(method: String, String)
}

enum WorkerReply: Codable, Sendable {
    case done
    case half
    case answers([Answer])
    case versions([Int?])
    case watched([Watched])
    case status(Int?)
}

/// How long a process got the first version after the change.
struct Watched: Codable, Sendable {
    let path: String
    /// The number of old responses, and the time of the last one, in seconds after the change.
    var oldAnswers = 0
    var lastOld: TimeInterval?
    /// The age of the oldest response of that version.
    var age: TimeInterval?
    /// Nil if the new version never came.
    var firstNew: TimeInterval?
}

/// One process of the fleet.
enum WorkerProcess {
    private static let pollPause = 0.025
    private static let patience: TimeInterval = 20

    static func run(_ arguments: [String]) async throws {
        guard let folder = arguments.first else { throw Failure("not started by hand") }
        RunningMark.set(in: URL(fileURLWithPath: folder, isDirectory: true))
        var client: Client?
        for await order in Orders.stream(of: WorkerOrder.self) {
            if case .open(let directory, let tierPort, let originPort) = order {
                client = try Client(
                    directory: directory.map { URL(fileURLWithPath: $0, isDirectory: true) }, tierPort: tierPort,
                    originPort: originPort)
                try Orders.reply(WorkerReply.done)
            } else if let client {
                try Orders.reply(try await obey(order, client))
            }
        }
    }

    private static func obey(_ order: WorkerOrder, _ client: Client) async throws -> WorkerReply {
        switch order {
        case .open:
            return .done
        case .load(let paths, let pause, let timeout, let tellsHalf):
            var answers: [Answer] = []
            for path in paths {
                answers.append(await client.answer(path, timeout: timeout))
                if tellsHalf, answers.count == paths.count / 2 { try Orders.reply(WorkerReply.half) }
                try await Task.sleep(for: .seconds(pause))
            }
            return .answers(answers)
        case .rush(let path, let callers):
            return .versions(await client.rush(path, callers: callers))
        case .watch(let paths, let since):
            return .watched(try await watch(paths, since: since, client))
        case .send(let method, let path):
            return .status(try await client.send(method, path))
        }
    }

    private static func watch(_ paths: [String], since: Date, _ client: Client) async throws -> [Watched] {
        var watched = paths.map { Watched(path: $0) }
        while let place = watched.firstIndex(where: { $0.firstNew == nil }), -since.timeIntervalSinceNow < patience {
            for index in watched.indices[place...] where watched[index].firstNew == nil {
                let answer = await client.answer(watched[index].path, timeout: 5)
                let elapsed = -since.timeIntervalSinceNow
                if answer.version == 1 {
                    watched[index].oldAnswers += 1
                    watched[index].lastOld = elapsed
                    watched[index].age = [watched[index].age, answer.age].compactMap(\.self).max()
                } else if answer.version != nil {
                    watched[index].firstNew = elapsed
                }
            }
            try await Task.sleep(for: .seconds(pollPause))
        }
        return watched
    }
}
