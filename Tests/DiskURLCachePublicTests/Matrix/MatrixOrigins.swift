import DiskURLCache
import Foundation

/// What a client sees of one load, by name: "status", "field etag", "events" and so on.
typealias MatrixOutcome = [String: String]

/// Two origins with the same answers, those of the shapes; redirects to another origin lead to the second.
struct MatrixOrigins {
    let main: OriginServer
    private let other: OriginServer

    init() throws {
        let other = try OriginServer { Self.answer(to: $0, elsewhere: "") }
        let port = other.port
        self.other = other
        main = try OriginServer { Self.answer(to: $0, elsewhere: "http://127.0.0.1:\(port)") }
    }

    /// Each load of a shape that shall not meet what others stored has a cell of its own.
    func url(_ shape: MatrixShape, _ number: Int, _ cell: Int) -> URL {
        main.url("/m/\(cell)/\(number)/\(shape.target)")
    }

    /// Leaves out which origin and which folder it was.
    func normal(_ number: Int) -> (MatrixOutcome, _ cell: Int) -> MatrixOutcome {
        let (here, there) = ("http://127.0.0.1:\(main.port)", "http://127.0.0.1:\(other.port)")
        return { outcome, cell in
            outcome.mapValues {
                $0.replacingOccurrences(of: here, with: "here").replacingOccurrences(of: there, with: "there")
                    .replacingOccurrences(of: "/m/\(cell)/\(number)", with: "")
            }
        }
    }

    private static let date = HTTPDateText.text(Date())

    private static func answer(to wire: OriginRequest, elsewhere: String) -> OriginResponse {
        let parts = wire.path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count > 4, let number = Int(parts[3]), MatrixShape.every.indices.contains(number) else {
            return .ok("warm", ["Cache-Control": "no-store", "Date": date])
        }
        let folder = parts[0...3].joined(separator: "/")
        var answer = MatrixShape.every[number].answer(
            MatrixRequest(
                path: parts[4...].joined(separator: "/"), folder: folder, elsewhere: elsewhere + folder,
                here: "http://" + (wire.fields["Host"] ?? ""), wire: wire))
        // One date for all, so that answers can be held against each other.
        answer.fields.append("Date", date)
        return answer
    }
}
