/// A 64-bit checksum of bytes that come in pieces, at memory speed in plain Swift.
///
/// Eight independent lanes, each taking 16 bytes of a 128-byte block. Every step is a bijection of the lane for fixed
/// input and of the input for a fixed lane, and so is the folding at the end: a change confined to one 8-byte word, such as
/// a flipped bit, is caught with certainty, other accidents as good as always. It does not stop attackers.
///
/// The format is in `OnDiskFormat.md`: it must never change within format version 1.
struct Checksum {
    private var lanes: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)
    private var length: UInt64 = 0

    static let blockSize = 128
    // Odd, so multiplication by it is a bijection of 64-bit words; the digits of the golden ratio.
    private static let factor: UInt64 = 0x9E37_79B9_7F4A_7C15

    init(seed: UInt64 = 0) {
        func start(_ lane: UInt64) -> UInt64 { (seed &+ lane &+ 1) &* 0xD6E8_FEB8_6659_FD93 }
        lanes = (start(0), start(1), start(2), start(3), start(4), start(5), start(6), start(7))
    }

    static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
        var checksum = Checksum(seed: seed)
        return checksum.finish(bytes)
    }

    @inline(__always)
    private static func mixed(_ lane: UInt64, _ first: UInt64, _ second: UInt64) -> UInt64 {
        // Multiplied and folded before the second word comes: a flip in the first cannot be undone by one in the second.
        var a = (lane ^ first) &* factor
        a ^= a &>> 32
        return ((a &<< 23 | a &>> 41) &+ second) &* factor
    }

    /// Takes whole blocks: `bytes.count` must be a multiple of `blockSize`. The last piece goes to `finish`.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, bytes.count >= Self.blockSize else { return }
        length &+= UInt64(bytes.count)
        var (a, b, c, d, e, f, g, h) = lanes
        var position = base
        let end = base + bytes.count / Self.blockSize * Self.blockSize
        @inline(__always) func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: position.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        while position < end {
            a = Self.mixed(a, word(0), word(8))
            b = Self.mixed(b, word(16), word(24))
            c = Self.mixed(c, word(32), word(40))
            d = Self.mixed(d, word(48), word(56))
            e = Self.mixed(e, word(64), word(72))
            f = Self.mixed(f, word(80), word(88))
            g = Self.mixed(g, word(96), word(104))
            h = Self.mixed(h, word(112), word(120))
            position += Self.blockSize
        }
        lanes = (a, b, c, d, e, f, g, h)
    }

    /// Takes the last piece, of any length, and gives the sum. The rest of the last block counts as zeros; the length is
    /// part of the sum, so bytes of zero at the end are not lost.
    mutating func finish(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        let whole = bytes.count / Self.blockSize * Self.blockSize
        if whole > 0 { update(UnsafeRawBufferPointer(rebasing: bytes[..<whole])) }
        let rest = bytes.count - whole
        if rest > 0 {
            withUnsafeTemporaryAllocation(byteCount: Self.blockSize, alignment: 8) { block in
                block.initializeMemory(as: UInt8.self, repeating: 0)
                block.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[whole...]))
                update(UnsafeRawBufferPointer(block))
            }
            length = length &- UInt64(Self.blockSize) &+ UInt64(rest)
        }
        var sum = length &* Self.factor
        func fold(_ lane: UInt64) {
            sum = (sum ^ lane) &* Self.factor
            sum ^= sum &>> 32
        }
        fold(lanes.0)
        fold(lanes.1)
        fold(lanes.2)
        fold(lanes.3)
        fold(lanes.4)
        fold(lanes.5)
        fold(lanes.6)
        fold(lanes.7)
        return sum
    }
}
