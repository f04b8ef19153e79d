// Added to the library in the copy that .ci/mutants makes: whether the edit with this number is switched on.

import Foundation

private let chosen = ProcessInfo.processInfo.environment["MUTANT"].flatMap { Int($0) }
/// A file with a byte for each edit, which becomes 1 when the edit is reached, in a child that is killed, too.
nonisolated(unsafe) private let reached = ProcessInfo.processInfo.environment["MUTANT_TRACE"].flatMap {
    mmap(nil, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, open($0, O_RDWR), 0)?.assumingMemoryBound(to: UInt8.self)
}
@usableFromInline func mutant(_ number: Int) -> Bool {
    reached?[number] = 1
    return number == chosen
}
