import Foundation
import NIOCore
import NIOHTTP1

/// A body of any length whose bytes show their position.
public enum MarkedBody {
    private static let piece = 256 << 10

    /// Thrown for wrong bytes, or too few of them.
    public struct Damage: Error {}

    private static func byte(at offset: Int) -> UInt8 { UInt8(truncatingIfNeeded: offset / piece % 251) }

    /// An origin whose answer may be stored for paths that begin with `/stored` only.
    public static func origin(length: Int) async throws -> Origin {
        try await Origin { request, answer in
            let cacheControl = request.path.hasPrefix("/stored") ? "max-age=3600" : "no-store"
            try await answer.head(.ok, ["Cache-Control": cacheControl, "Content-Length": "\(length)"])
            var sent = 0
            while sent < length {
                let count = min(piece, length - sent)
                try await answer.piece(ByteBuffer(repeating: byte(at: sent), count: count))
                sent += count
            }
        }
    }

    /// Reads the whole body, and checks both ends of each piece.
    public static func read<Body: AsyncSequence>(_ body: Body, length: Int) async throws
    where Body.Element == ByteBuffer {
        var read = 0
        for try await buffer in body where buffer.readableBytes > 0 {
            let ends = [buffer.readableBytesView.first, buffer.readableBytesView.last]
            guard ends == [byte(at: read), byte(at: read + buffer.readableBytes - 1)] else { throw Damage() }
            read += buffer.readableBytes
        }
        guard read == length else { throw Damage() }
    }
}
