import DiskURLCache
import ExampleSupport
import Foundation

/// `swift run --package-path Examples Recipes`: runs the recipes of the article "Recipes", each with an origin inside
/// the program and a separate folder. Exits with status 1 if a recipe does not do what the article says. The recipe for
/// AsyncHTTPClient is `Integrations/Sources/Recipe`, the recipe for tests `Examples/Tests`.
@main
enum Recipes {
    typealias Recipe = @Sendable (Origin, URL) async throws -> Void

    static let all: [(name: String, run: Recipe)] = [
        ("Cache images for seven days", imagesForSevenDays),
        ("Never cache an account", neverCacheAnAccount),
        ("Cache a signed POST", signedPost),
        ("Log out one account", logOutOneAccount),
        ("Show something offline", offline),
        ("Ship a filled cache", filledCache),
        ("Find out why a response was not cached", whyNotCached),
        ("Limit the disk to 50 MB", diskLimit),
    ]

    static func main() async throws {
        let root = temporaryDirectory("Recipes")
        for (number, recipe) in all.enumerated() {
            let origin = try await Origin.start(handler: answer)
            try await recipe.run(origin, root.appendingPathComponent("\(number)", isDirectory: true))
            await origin.stop()
            print("ok  \(recipe.name)")
        }
        try? FileManager.default.removeItem(at: root)
    }

    /// Fields and text by the first part of the path.
    private static let resources: [String: (fields: [String: String], text: String)] = [
        "picture.png": (["Content-Type": "image/png"], "a picture without a lifetime"),
        "me": (["Cache-Control": "max-age=600"], "an account"),
        "menu": (["Cache-Control": "max-age=600"], "a menu"),
        "search": (["Content-Type": "application/json"], #"{"returnCode":0}"#),
        "inbox": (["Cache-Control": "private, max-age=600"], "an inbox"),
        "news": (["Cache-Control": "max-age=0", "ETag": #""1""#], "news"),
        "guide": (["Cache-Control": "max-age=86400"], "a guide"),
        "feed": (["Content-Type": "text/plain"], "a feed without a lifetime"),
        "film": (["Cache-Control": "max-age=600"], String(repeating: "0123456789abcdef", count: 1 << 16)),
    ]

    @Sendable private static func answer(_ request: Origin.Request) async -> Origin.Reply {
        guard let name = request.path.split(separator: "/").first, let resource = resources[String(name)] else {
            return Origin.Reply(404, text: "Nothing here.")
        }
        return Origin.Reply(fields: resource.fields, text: resource.text)
    }
}
