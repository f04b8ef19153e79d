import Foundation
import Testing

@testable import DiskURLCache

/// Random and mutated inputs for the decoders: no crash, nothing altered, bounded memory.
///
/// `TestLength` says how many.
@Suite("Fuzzed decoders", .fewAtATime) struct DecoderFuzzTests {
    private static let iterations: Int = {
        #if os(Linux)
            // What memory they take shows early.
            if ChildProcess.argument("MODE") != nil { return min(TestLength.fuzzIterations, 20_000) }
        #endif
        return TestLength.fuzzIterations
    }()

    private static func mutate(_ bytes: [UInt8], _ random: inout TestRandom) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<7, using: &random) {
            case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 1: bytes[place] = [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &random) ?? 0
            case 2: bytes.removeSubrange(place..<min(bytes.count, place + Int.random(in: 1...9, using: &random)))
            case 3: bytes.insert(contentsOf: bytes[place..<min(bytes.count, place + 8)], at: place)
            case 4: bytes.removeSubrange(place...)
            case 5:
                for offset in place..<min(bytes.count, place + 8) { bytes[offset] = 0xFF }
            default: bytes.append(UInt8.random(in: 0 ... .max, using: &random))
            }
        }
        return bytes
    }

    @Test func metadata() throws {
        let entry = StoredEntry.test(
            Data(), language: "de", tags: ["a", "b"],
            userInfo: [
                "a": .array([.integer(1), .real(.nan), .boolean(true), .date(Date())]),
                "b": .dictionary(["c": .data(Data([1, 2, 3])), "d": .string("é")]),
            ])
        var other = entry.metadata
        other.response = .other(mimeType: "text/plain", expectedContentLength: -1, textEncodingName: nil)
        let seeds = try [entry.metadata, other].map { try #require(MetadataCodec.encode($0, keepsURL: true)) }
        var random = TestRandom(1)
        var decoded = 0
        for number in 0..<Self.iterations {
            let bytes = Self.mutate(seeds[number % 2], &random)
            guard let result = bytes.withUnsafeBytes({ MetadataCodec.decode($0, sequence: 1, isPinned: false) }) else {
                continue
            }
            decoded += 1
            // What is taken for metadata can be written again, no field can be forged by it, and it is read as the
            // same. By its bytes: a time or a number that is none does not equal itself.
            let again = MetadataCodec.encode(result, keepsURL: true)
            let reread = again?.withUnsafeBytes { MetadataCodec.decode($0, sequence: 1, isPinned: false) }
            if again == nil || reread.flatMap({ MetadataCodec.encode($0, keepsURL: true) }) != again {
                Issue.record("not writable, or not as it was: \(result)")
            }
        }
        #expect(decoded > 0)
    }

    @Test func nestedUserInfoIsBounded() {
        // Arrays in arrays, 100,000 deep, and as many values: refused both ways.
        var writer = ByteWriter()
        writer.append(UInt32(1))
        writer.append("a")
        for _ in 0..<100_000 {
            writer.append(UInt8(8))
            writer.append(UInt32(1))
        }
        func decode(_ writer: ByteWriter) -> [String: PropertyValue]? {
            writer.finish().withUnsafeBytes { bytes in
                var reader = ByteReader(bytes)
                return PropertyValueCodec.readDictionary(from: &reader)
            }
        }
        #expect(decode(writer) == nil)
        var wide = ByteWriter()
        wide.append(UInt32(1))
        wide.append("a")
        wide.append(UInt8(8))
        wide.append(UInt32(100_000))
        for _ in 0..<100_000 { wide.append(UInt8(4)) }
        #expect(decode(wide) == nil)
        var deep = PropertyValue.integer(1)
        for _ in 0..<PropertyValueCodec.maximumDepth { deep = .array([deep]) }
        var out = ByteWriter()
        #expect(!PropertyValueCodec.write(["a": deep], to: &out))
        out = ByteWriter()
        #expect(!PropertyValueCodec.write(["a": .array(.init(repeating: .boolean(true), count: 70_000))], to: &out))
    }

    @Test func records() throws {
        let fixture = try DiskFixture()
        let key = RequestKey.test("a")
        let store = fixture.open()
        let entry = StoredEntry.test(testBody(1, length: 200), language: "de")
        store.store(entry, for: key)
        store.close()
        let path = try #require(fixture.onlyRecord(key))
        let good = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        let reader = RecordReader(files: SystemFiles(), paths: DiskPaths(directory: fixture.directory))
        var random = TestRandom(2)
        // Through the file system, so fewer of them.
        for _ in 0..<max(200, Self.iterations / 20) {
            let bytes = Self.mutate(good, &random)
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            guard case .record(let record) = reader.read(RecordName(key: key.name, slot: 0), .whole, limit: 1 << 20)
            else { continue }
            // Bytes between the body and the last tail say nothing.
            if record.body != entry.body || record.metadata != entry.metadata {
                Issue.record("altered bytes were taken for the record")
            }
        }
        // Without the checksums in the way, the footer alone: written again it is the same.
        var decoded = 0
        for _ in 0..<Self.iterations {
            let bytes = Self.mutate(good, &random)
            bytes.withUnsafeBytes { bytes in
                guard case .footer(let footer) = RecordFooter.decode(endOf: bytes) else { return }
                decoded += 1
                if footer.metadataLength > MetadataCodec.maximumLength || footer.bodyLength < 0 {
                    Issue.record("lengths out of bounds: \(footer)")
                }
                var again = [UInt8](repeating: 0, count: RecordFooter.length)
                again.withUnsafeMutableBytes { footer.write(into: $0) }
                if !again.dropLast(8).elementsEqual(bytes.suffix(RecordFooter.length).dropLast(8)) {
                    Issue.record("not as it was: \(footer)")
                }
                // Damage in the body is for its own checksum to find.
                let isSame = good.suffix(footer.tailLength).elementsEqual(bytes.suffix(footer.tailLength))
                if footer.metadata(in: bytes) != nil, !isSame {
                    Issue.record("altered bytes were taken for intact ones")
                }
            }
        }
        #expect(decoded > Self.iterations / 10)
    }

    @Test func indexes() {
        var index = DiskIndex()
        for number in 0..<5 {
            index.append(.test(.test("\(number)"), slot: 1, accessedAt: 1))
        }
        let good = IndexFile.encode(index)
        var random = TestRandom(3)
        var decoded = 0
        for number in 0..<Self.iterations {
            var bytes = Self.mutate(good, &random)
            let length = bytes.count
            if number % 2 == 0, let count = IndexFileLayout.count(forLength: length) {
                // With the checksum right, what is in the columns gets through.
                let offset = IndexFileLayout(count: count).checksumOffset
                bytes.replaceSubrange(offset..<offset + 8, with: [UInt8](repeating: 0, count: 8))
                let sum = bytes.withUnsafeBytes { Checksum.of($0) }
                withUnsafeBytes(of: sum.littleEndian) { bytes.replaceSubrange(offset..<offset + 8, with: $0) }
            }
            let result = bytes.withUnsafeMutableBytes { IndexFile.decode($0) }
            guard let result else { continue }
            decoded += 1
            if result.index.count > 5 { Issue.record("rows from nowhere") }
            var again = IndexFile.encode(result.index)
            let reread = again.withUnsafeMutableBytes { IndexFile.decode($0) }
            // Decoding uses the bytes as scratch: written once more.
            again = IndexFile.encode(result.index)
            if reread.map({ IndexFile.encode($0) }) != again {
                Issue.record("not as it was")
            }
            if reread?.index.bytes != result.index.bytes || result.index.bytes > 5 << 40 {
                Issue.record("\(result.index.bytes) bytes")
            }
        }
        #expect(decoded > 0)
    }

    #if os(Linux)
        /// All decoders, each with its share of inputs, by themselves in a process: what they take at most.
        static func runInChild() throws {
            let tests = DecoderFuzzTests()
            // What the runtime, the seeds and the first rounds take is not theirs.
            try tests.metadata()
            let before = ProcessMemory.highWater
            try tests.metadata()
            tests.indexes()
            tests.nestedUserInfoIsBounded()
            ChildProcess.say("\(ProcessMemory.highWater - before)")
        }

        @Test("No input makes a decoder take more than 32 MB") func memory() throws {
            let fixture = try DiskFixture()
            let said = try ChildProcess("fuzz", directory: fixture.directory).remainingLines()
            let bytes = try #require(said.first.flatMap(Int.init))
            #expect(bytes < 32 << 20)
        }
    #endif
}
