import Foundation

/// A body, or a part of one, in a file that is kept open; its bytes are not in memory.
///
/// The file may be removed from its folder meanwhile and can still be read.
package struct OpenBody: Sendable {
    /// Which bytes of the whole body these are.
    private var range: Range<Int>
    private let read: @Sendable (_ range: Range<Int>, _ rest: [Data]) -> Data?
    private let copy: @Sendable (_ range: Range<Int>, _ file: Int32) -> Int32?

    /// Of a piece that a client gets at once: large enough that the work for each piece hardly counts.
    static let pieceLength = 256 << 10

    /// - Parameters:
    ///   - read: returns these bytes of the body, followed by other data; nil if they cannot be read. The closure keeps
    ///     the file open.
    ///   - copy: appends these bytes of the body to a file that is open for writing; the system's error number if that
    ///     fails.
    init(
        count: Int, read: @escaping @Sendable (_ range: Range<Int>, _ rest: [Data]) -> Data?,
        copy: @escaping @Sendable (_ range: Range<Int>, _ file: Int32) -> Int32?
    ) {
        range = 0..<count
        self.read = read
        self.copy = copy
    }

    var count: Int { range.count }

    /// - Parameter part: a range of these bytes.
    func part(_ part: Range<Int>) -> OpenBody {
        var body = self
        let part = part.clamped(to: 0..<count)
        body.range = range.lowerBound + part.lowerBound..<range.lowerBound + part.upperBound
        return body
    }

    /// The bytes in memory; nil if they cannot be read.
    var contents: Data? { read(range, []) }

    /// The same, followed by what is not in the file.
    func contents(followedBy rest: [Data]) -> Data? { read(range, rest) }

    /// Appends the bytes to a file that is open for writing, without reading them into memory where the system can.
    /// Returns the system's error number if that fails.
    func copy(to file: Int32) -> Int32? { copy(range, file) }
}

/// A whole body, stored or on its way into the store: in memory, or in an open file.
package enum Body: Sendable {
    case memory(Data)
    /// Indirect, since few bodies are large.
    indirect case file(OpenBody)

    var count: Int {
        switch self {
        case .memory(let data): data.count
        case .file(let body): body.count
        }
    }

    /// The bytes that are delivered.
    func part(_ presentation: Presentation) -> Body {
        if presentation == .whole { return self }
        switch self {
        // A fresh `Data`: a slice's indices would not start at 0.
        case .memory(let data): return .memory(Data(presentation.body(of: data)))
        case .file(let body): return .file(body.part(presentation.range(of: body.count)))
        }
    }
}
