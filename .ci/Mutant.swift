// Added to the library in the copy that .ci/mutants makes: whether the edit with this number is switched on.

import Foundation

private let chosen = getenv("MUTANT").flatMap { Int(String(cString: $0)) } ?? 0
/// A file with a byte for each mutant, which becomes 1 when the mutant is reached, in a child that is killed, too.
nonisolated(unsafe) private let trace: UnsafeMutablePointer<UInt8>? = {
    guard let path = getenv("MUTANT_TRACE"), case let file = open(path, O_RDWR), file >= 0 else { return nil }
    defer { close(file) }
    let bytes = mmap(nil, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
    return bytes == MAP_FAILED ? nil : bytes?.assumingMemoryBound(to: UInt8.self)
}()
@usableFromInline func mutant(_ number: Int) -> Bool {
    trace?[number] = 1
    return number == chosen
}
