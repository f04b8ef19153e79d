import Foundation

/// The program of the fuzzer: `fuzz TARGET`, and then the options of libFuzzer, such as a folder for its corpus.
enum Fuzz {
    private static let parsers = ParserProperties { input, line in
        fatalError("ParserProperties.swift:\(line): \(input.debugDescription)")
    }
    private static let decoders = DecoderProperties { problem, line in
        fatalError("DecoderProperties.swift:\(line): \(problem)")
    }

    /// What each target does with an input. A fault ends the program, and libFuzzer writes the input to a file.
    nonisolated(unsafe) private static var run: ([UInt8]) -> Void = { _ in }

    private static let targets: [String: @Sendable ([UInt8]) -> Void] = [
        "fields": { bytes in
            guard let kind = bytes.first else { return }
            let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
            switch kind % 4 {
            case 0: _ = parsers.date(text)
            case 1: _ = parsers.cacheControl(text)
            case 2: _ = parsers.list(text)
            default: _ = parsers.tagOrRange(text)
            }
        },
        "structured": { _ = parsers.structuredField(String(decoding: $0, as: UTF8.self)) },
        "keys": { bytes in
            guard let kind = bytes.first else { return }
            let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
            _ = kind % 2 == 0 ? parsers.url("http" + text) : parsers.json(text)
        },
        "files": { bytes in
            guard let kind = bytes.first else { return }
            let rest = Array(bytes.dropFirst())
            switch kind % 4 {
            case 0: _ = decoders.metadata(rest)
            case 1: _ = decoders.footer(rest)
            case let kind: _ = decoders.index(rest, rows: rest.count, summed: kind == 2)
            }
        },
        "operations": { Operations($0).run() },
    ]

    /// The first argument is the target; libFuzzer gets the others.
    fileprivate static func choose(
        _ count: UnsafeMutablePointer<CInt>,
        _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
    ) {
        let name = count.pointee > 1 ? arguments.pointee[1].map { String(cString: $0) } ?? "" : ""
        guard let target = targets[name] else {
            print("usage: Fuzz \(targets.keys.sorted().joined(separator: "|")) [option of libFuzzer …] [corpus folder]")
            exit(2)
        }
        run = target
        arguments.pointee[1] = arguments.pointee[0]
        arguments.pointee += 1
        count.pointee -= 1
    }

    fileprivate static func play(_ input: [UInt8]) { run(input) }
}

// libFuzzer has the program's `main`, and calls these.

@_cdecl("LLVMFuzzerInitialize") public func initialize(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
) -> CInt {
    Fuzz.choose(count, arguments)
    return 0
}

@_cdecl("LLVMFuzzerTestOneInput") public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    Fuzz.play(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
}
