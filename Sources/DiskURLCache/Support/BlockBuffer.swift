/// Gathers bytes that come in pieces of any length into blocks.
struct BlockBuffer: Sendable {
    private let blockLength: Int
    /// The last bytes, less than a block.
    private(set) var rest: [UInt8] = []

    init(blockLength: Int) { self.blockLength = blockLength }

    /// - Parameter take: called with any number of whole blocks, in order.
    mutating func append(_ piece: UnsafeRawBufferPointer, _ take: (UnsafeRawBufferPointer) -> Void) {
        var bytes = piece[...]
        if !rest.isEmpty {
            let missing = bytes.prefix(blockLength - rest.count)
            rest += missing
            bytes = bytes.dropFirst(missing.count)
            guard rest.count == blockLength else { return }
            rest.withUnsafeBytes { take($0) }
            rest.removeAll(keepingCapacity: true)
        }
        let whole = bytes.prefix(bytes.count / blockLength * blockLength)
        take(UnsafeRawBufferPointer(rebasing: whole))
        rest += bytes.dropFirst(whole.count)
    }
}
