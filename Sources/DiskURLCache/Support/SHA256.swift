/// SHA-256 (FIPS 180-4) of keys, in plain Swift: the same code on every platform, since a folder is read on each. Texts
/// are some hundred bytes long.
enum SHA256Digest {
    static func digest(of string: String) -> KeyDigest {
        string.withBytes { digest(of: UnsafeRawBufferPointer($0)) }
    }

    static func digest(of bytes: UnsafeRawBufferPointer) -> KeyDigest {
        var state = initialState
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { schedule in
            let wholeBlocks = bytes.count / 64
            for block in 0..<wholeBlocks {
                compress(&state, UnsafeRawBufferPointer(rebasing: bytes[block * 64..<block * 64 + 64]), schedule)
            }
            // The tail: the remaining bytes, one 0x80 byte, zeros, and the length in bits.
            withUnsafeTemporaryAllocation(byteCount: 128, alignment: 8) { tail in
                tail.initializeMemory(as: UInt8.self, repeating: 0)
                let rest = bytes.count - wholeBlocks * 64
                if rest > 0 {
                    tail.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[(wholeBlocks * 64)...]))
                }
                tail[rest] = 0x80
                let tailLength = rest < 56 ? 64 : 128
                tail.storeBytes(of: UInt64(bytes.count &* 8).bigEndian, toByteOffset: tailLength - 8, as: UInt64.self)
                for block in 0..<tailLength / 64 {
                    compress(&state, UnsafeRawBufferPointer(rebasing: tail[block * 64..<block * 64 + 64]), schedule)
                }
            }
        }
        return KeyDigest { UInt64(state[$0 * 2]) << 32 | UInt64(state[$0 * 2 + 1]) }
    }

    /// Compresses any number of whole blocks of 64 bytes.
    static func compress(_ state: inout SIMD8<UInt32>, blocks: UnsafeRawBufferPointer) {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { schedule in
            for start in stride(from: 0, to: blocks.count, by: 64) {
                compress(&state, UnsafeRawBufferPointer(rebasing: blocks[start..<start + 64]), schedule)
            }
        }
    }

    static let initialState = SIMD8<UInt32>(
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19)

    @inline(__always)
    private static func rotated(_ value: UInt32, _ count: UInt32) -> UInt32 {
        value &>> count | value &<< (32 &- count)
    }

    private static func compress(
        _ state: inout SIMD8<UInt32>, _ block: UnsafeRawBufferPointer, _ schedule: UnsafeMutableBufferPointer<UInt32>
    ) {
        guard let w = schedule.baseAddress else { return }
        for index in 0..<16 {
            w[index] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: index &* 4, as: UInt32.self))
        }
        var index = 16
        while index < 64 {
            let (early, late) = (w[index &- 15], w[index &- 2])
            let s0 = rotated(early, 7) ^ rotated(early, 18) ^ early &>> 3
            let s1 = rotated(late, 17) ^ rotated(late, 19) ^ late &>> 10
            w[index] = w[index &- 16] &+ s0 &+ w[index &- 7] &+ s1
            index &+= 1
        }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        roundConstants.withUnsafeBufferPointer { constants in
            guard let k = constants.baseAddress else { return }
            // Eight rounds in each step: after eight, every word is back in its variable, so that none has to be moved.
            var index = 0
            while index < 64 {
                round(a, b, c, &d, e, f, g, &h, k[index] &+ w[index])
                round(h, a, b, &c, d, e, f, &g, k[index &+ 1] &+ w[index &+ 1])
                round(g, h, a, &b, c, d, e, &f, k[index &+ 2] &+ w[index &+ 2])
                round(f, g, h, &a, b, c, d, &e, k[index &+ 3] &+ w[index &+ 3])
                round(e, f, g, &h, a, b, c, &d, k[index &+ 4] &+ w[index &+ 4])
                round(d, e, f, &g, h, a, b, &c, k[index &+ 5] &+ w[index &+ 5])
                round(c, d, e, &f, g, h, a, &b, k[index &+ 6] &+ w[index &+ 6])
                round(b, c, d, &e, f, g, h, &a, k[index &+ 7] &+ w[index &+ 7])
                index &+= 8
            }
        }
        state = state &+ SIMD8(a, b, c, d, e, f, g, h)
    }

    @inline(__always)
    private static func round(
        _ a: UInt32, _ b: UInt32, _ c: UInt32, _ d: inout UInt32, _ e: UInt32, _ f: UInt32, _ g: UInt32,
        _ h: inout UInt32, _ word: UInt32
    ) {
        let t1 = h &+ (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) &+ (g ^ e & (f ^ g)) &+ word
        d = d &+ t1
        h = t1 &+ (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) &+ (a & b ^ c & (a ^ b))
    }

    private static let roundConstants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]
}
