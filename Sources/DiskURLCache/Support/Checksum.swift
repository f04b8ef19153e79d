/// A 64-bit checksum of bytes that come in pieces, at twice the speed of copying them, in plain Swift.
///
/// Eight lanes, each taking one 8-byte word of a 64-byte block. A lane keeps the sum of its words, in which no change
/// of a single word is lost, and the sum of the products of that sum's halves after each word, in which no change of
/// their order is. It does not stop attackers.
///
/// The format is in `OnDiskFormat.md`: it must never change within format version 1.
package struct Checksum {
    // Vectors, since the compiler makes none of eight variables. Little-endian machines only, as all that Swift
    // supports.
    private var sums: SIMD8<UInt64>
    private var products = SIMD8<UInt64>()
    private var length: UInt64 = 0

    static let blockSize = 64
    // Odd, so multiplication by it is a bijection of 64-bit words; the digits of the golden ratio.
    private static let factor: UInt64 = 0x9E37_79B9_7F4A_7C15

    init(seed: UInt64 = 0) {
        sums = (SIMD8(1, 2, 3, 4, 5, 6, 7, 8) &+ SIMD8(repeating: seed)) &* SIMD8(repeating: 0xD6E8_FEB8_6659_FD93)
    }

    package static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
        var checksum = Checksum(seed: seed)
        return checksum.finish(bytes)
    }

    /// Takes whole blocks: `bytes.count` must be a multiple of `blockSize`. The last piece goes to `finish`.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, bytes.count >= Self.blockSize else { return }
        length &+= UInt64(bytes.count)
        // In registers: the compiler would write them back after each block.
        var (sums, products) = (sums, products)
        let lowHalf = SIMD8<UInt64>(repeating: 0xFFFF_FFFF)
        var position = base
        let end = base + bytes.count / Self.blockSize * Self.blockSize
        while position < end {
            sums &+= position.loadUnaligned(as: SIMD8<UInt64>.self)
            products &+= (sums & lowHalf) &* (sums &>> 32)
            position += Self.blockSize
        }
        (self.sums, self.products) = (sums, products)
    }

    /// Takes the last piece, of any length, and gives the checksum. The rest of the last block counts as zeros; the
    /// length is part of the checksum, so bytes of zero at the end are not lost.
    mutating func finish(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        let whole = bytes.count / Self.blockSize * Self.blockSize
        if whole > 0 { update(UnsafeRawBufferPointer(rebasing: bytes[..<whole])) }
        let rest = bytes.count - whole
        if rest > 0 {
            var block = SIMD8<UInt64>()
            withUnsafeMutableBytes(of: &block) {
                $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[whole...]))
                update(UnsafeRawBufferPointer($0))
            }
            length = length &- UInt64(Self.blockSize) &+ UInt64(rest)
        }
        var checksum = length &* Self.factor
        func fold(_ lanes: SIMD8<UInt64>) {
            for lane in 0..<8 {
                checksum = (checksum ^ lanes[lane]) &* Self.factor
                checksum ^= checksum &>> 32
            }
        }
        fold(sums)
        fold(products)
        return checksum
    }
}
