import Foundation

@testable import DiskURLCache

/// What must hold for each input of a decoder, whoever makes the inputs: `DecoderFuzzTests`, by a seed, or the fuzzer
/// of `Tools/Fuzzing`, which this file is a part of, too.
struct DecoderProperties: Sendable {
    /// Called with what does not hold, and the line that says so.
    let fail: @Sendable (_ problem: String, _ line: Int) -> Void

    init(_ fail: @escaping @Sendable (_ problem: String, _ line: Int) -> Void) { self.fail = fail }

    private func check(_ condition: Bool, _ problem: @autoclosure () -> String, line: Int = #line) {
        if !condition { fail(problem(), line) }
    }

    /// - Returns: whether the bytes were taken for metadata.
    func metadata(_ bytes: [UInt8]) -> Bool {
        guard let result = bytes.withUnsafeBytes({ MetadataCodec.decode($0, sequence: 1, isPinned: false) }) else {
            return false
        }
        // What is taken for metadata can be written again, no field can be forged by it, and it is read as the same.
        // By its bytes: a time or a number that is none does not equal itself.
        let again = MetadataCodec.encode(result, keepsURL: true)
        let reread = again?.withUnsafeBytes { MetadataCodec.decode($0, sequence: 1, isPinned: false) }
        let isSame = again != nil && reread.flatMap { MetadataCodec.encode($0, keepsURL: true) } == again
        check(isSame, "not writable, or not as it was: \(result)")
        return true
    }

    /// The end of a record, without the checksums in the way.
    /// - Returns: the footer that the bytes were taken for.
    func footer(_ bytes: [UInt8]) -> RecordFooter? {
        guard case .footer(let footer) = bytes.withUnsafeBytes({ RecordFooter.decode(endOf: $0) }) else { return nil }
        let isBounded = footer.metadataLength <= MetadataCodec.maximumLength && footer.bodyLength >= 0
        check(isBounded, "lengths out of bounds: \(footer)")
        var again = [UInt8](repeating: 0, count: RecordFooter.length)
        again.withUnsafeMutableBytes { footer.write(into: $0) }
        let isSame = again.dropLast(8).elementsEqual(bytes.suffix(RecordFooter.length).dropLast(8))
        check(isSame, "not as it was: \(footer)")
        _ = bytes.withUnsafeBytes { footer.metadata(in: $0) }
        return footer
    }

    /// - Parameters:
    ///   - rows: how many rows the bytes can have at most.
    ///   - summed: whether the checksum is made right, so that what is in the columns gets through.
    /// - Returns: whether the bytes were taken for an index.
    func index(_ given: [UInt8], rows: Int, summed: Bool) -> Bool {
        var bytes = given
        if summed, let count = IndexFileLayout.count(forLength: bytes.count) {
            let offset = IndexFileLayout(count: count).checksumOffset
            bytes.replaceSubrange(offset..<offset + 8, with: [UInt8](repeating: 0, count: 8))
            let sum = bytes.withUnsafeBytes { Checksum.of($0) }
            withUnsafeBytes(of: sum.littleEndian) { bytes.replaceSubrange(offset..<offset + 8, with: $0) }
        }
        guard let read = bytes.withUnsafeMutableBytes({ IndexFile.decode($0) }) else { return false }
        check(read.count <= rows, "rows from nowhere")
        let index = index(of: read)
        var again = encoded(index)
        let reread = again.withUnsafeMutableBytes { IndexFile.decode($0) }
        // Decoding uses the bytes as scratch: written once more.
        again = encoded(index)
        let same = reread.map(self.index)
        check(same.map(encoded) == again, "not as it was")
        check(same?.bytes == index.bytes && index.bytes <= rows << 40, "\(index.bytes) bytes")
        return true
    }

    private func index(of rows: [IndexRow]) -> DiskIndex {
        var index = DiskIndex()
        for row in rows { index.put(row, usedAt: 0) }
        return index
    }

    private func encoded(_ index: DiskIndex) -> [UInt8] {
        let rows = Array(index.inOrder)
        return IndexFile.encode(count: rows.count) { rows.forEach($0) }
    }
}
