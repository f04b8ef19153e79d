import Foundation

/// The digest of content that arrives in pieces, by one of the algorithms that RFC 9530 §5 lists for use against
/// adversaries.
struct ContentHash: Sendable {
    enum Algorithm: String, Sendable, CaseIterable {
        case sha256 = "sha-256"
        case sha512 = "sha-512"

        /// Bytes that are compressed together.
        fileprivate var blockLength: Int { self == .sha256 ? 64 : 128 }
    }

    fileprivate enum State: Sendable {
        case sha256(SIMD8<UInt32>)
        case sha512(SIMD8<UInt64>)
    }

    private let algorithm: Algorithm
    private var state: State
    private var buffer: BlockBuffer
    /// Of all bytes.
    private var count: UInt64 = 0

    init(_ algorithm: Algorithm) {
        self.algorithm = algorithm
        buffer = BlockBuffer(blockLength: algorithm.blockLength)
        state =
            switch algorithm {
            case .sha256: .sha256(SHA256Digest.initialState)
            case .sha512: .sha512(SHA512Digest.initialState)
            }
    }

    mutating func update(_ piece: Data) {
        count &+= UInt64(piece.count)
        piece.withUnsafeBytes { bytes in buffer.append(bytes) { state.compress($0) } }
    }

    /// Of all bytes so far.
    var digest: [UInt8] {
        // The rest, one 0x80 byte, zeros, and the length in bits.
        let lengthBytes = algorithm.blockLength / 8
        var tail = buffer.rest + [0x80]
        while tail.count % algorithm.blockLength != algorithm.blockLength - lengthBytes { tail.append(0) }
        tail += [UInt8](repeating: 0, count: lengthBytes - 8)
        tail += withUnsafeBytes(of: (count &* 8).bigEndian) { Array($0) }
        var state = state
        tail.withUnsafeBytes { state.compress($0) }
        return state.bytes
    }
}

extension ContentHash.State {
    /// - Parameter blocks: any number of whole blocks.
    fileprivate mutating func compress(_ blocks: UnsafeRawBufferPointer) {
        switch self {
        case .sha256(var words):
            SHA256Digest.compress(&words, blocks: blocks)
            self = .sha256(words)
        case .sha512(var words):
            for start in stride(from: 0, to: blocks.count, by: 128) {
                SHA512Digest.compress(&words, UnsafeRawBufferPointer(rebasing: blocks[start..<start + 128]))
            }
            self = .sha512(words)
        }
    }

    fileprivate var bytes: [UInt8] {
        func bytes(of word: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: word.bigEndian) { Array($0) } }
        return switch self {
        case .sha256(let words): (0..<8).flatMap { bytes(of: words[$0]) }
        case .sha512(let words): (0..<8).flatMap { bytes(of: words[$0]) }
        }
    }
}
