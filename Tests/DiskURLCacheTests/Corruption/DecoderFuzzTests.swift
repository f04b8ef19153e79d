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

    static let properties = DecoderProperties(issues(in: "Corruption/DecoderProperties.swift"))

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
            if Self.properties.metadata(Self.mutate(seeds[number % 2], &random)) { decoded += 1 }
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
            guard let footer = Self.properties.footer(bytes) else { continue }
            decoded += 1
            // Damage in the body is for its own checksum to find.
            let isSame = good.suffix(footer.tailLength).elementsEqual(bytes.suffix(footer.tailLength))
            if bytes.withUnsafeBytes({ footer.metadata(in: $0) }) != nil, !isSame {
                Issue.record("altered bytes were taken for intact ones")
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
            if Self.properties.index(Self.mutate(good, &random), rows: 5, summed: number % 2 == 0) { decoded += 1 }
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
