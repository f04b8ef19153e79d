import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `swift run --package-path Examples StaleThenFresh`: shows the stored answer at once and the new one when it arrives,
/// and then does the same while the origin is down.
@main
enum StaleThenFresh {
    static func main() async throws {
        let edition = Edition()
        let origin = try await Origin.start(delay: .milliseconds(150)) { _ in
            Origin.Reply(
                fields: ["Content-Type": "text/plain", "Cache-Control": "max-age=1"],
                text: "edition \(await edition.current)")
        }
        let directory = temporaryDirectory("StaleThenFresh")
        defer { try? FileManager.default.removeItem(at: directory) }

        var settings = DiskURLCache.Configuration(directory: directory)
        settings.staleIfError = .hours(1)
        let cache = DiskURLCache(configuration: settings)
        URLCache.shared = cache
        let news = URLRequest(url: origin.url("/news"))

        print("The origin takes 150 ms for each answer, which is fresh for one second.\n")
        await show("first visit: nothing is stored", news, cache, expecting: ["edition 1"])
        await show("at once again: stored and fresh", news, cache, expecting: ["edition 1"])
        await edition.publish()
        // Time has to pass for an answer to become stale; the program waits for nothing else.
        try await Task.sleep(for: .milliseconds(2_100))
        await show(
            "two seconds and a new edition later: the old one at once, then the new one", news, cache,
            expecting: ["stale edition 1", "edition 2"])

        await origin.stop()
        try await Task.sleep(for: .milliseconds(2_100))
        await show(
            "the origin is down: the stored one at once, then the error", news, cache,
            expecting: ["stale edition 2", "error"])

        print("plain URLSession.shared, the origin still down, staleIfError an hour")
        let load = await load(news, watching: cache)
        line(load.source, load.seconds, String(decoding: load.data, as: UTF8.self))
        print("  Cache-Status: \(load.report?.cacheStatus ?? "")")
        expect(load.data == Data("edition 2".utf8), "the stored edition 2 was expected while the origin is down")
    }

    /// Prints the answers, and fails if they are not the expected ones.
    private static func show(
        _ title: String, _ request: URLRequest, _ cache: DiskURLCache, expecting expected: [String]
    ) async {
        print(title)
        let start = Date()
        var answers: [String] = []
        do {
            for try await answer in cache.answers(for: request) {
                answers.append((answer.isStale ? "stale " : "") + String(decoding: answer.data, as: UTF8.self))
                let age = answer.report.age.map { ", \($0) s old" } ?? ""
                line(
                    answer.report.outcome.text + age, Date().timeIntervalSince(start),
                    String(decoding: answer.data, as: UTF8.self))
            }
        } catch {
            answers.append("error")
            line("error", Date().timeIntervalSince(start), error.localizedDescription)
        }
        print("")
        expect(answers == expected, "\(title): \(answers) came, \(expected) were expected")
    }

    private static func line(_ source: String, _ seconds: TimeInterval, _ text: String) {
        let time = milliseconds(seconds)
        print(
            "  after", String(repeating: " ", count: max(0, 8 - time.count)) + time + "  ",
            source.padding(toLength: max(24, source.count), withPad: " ", startingAt: 0), text)
    }
}

/// The edition that the origin publishes.
actor Edition {
    private(set) var current = 1

    func publish() { current += 1 }
}
