/// Variants, by name, whose last store may not have reached the server: the server may have an older entry, or the
/// store may still arrive. Before such a name is used again, these variants are removed from the server.
struct Doubts {
    /// For each name its variants, each with the number of its last doubt.
    private var numbers: [String: [String: Int]] = [:]
    private var lastNumber = 0

    /// The limit of names. If there are more, some name is forgotten.
    private static let mostNames = 1_024

    mutating func add(_ variant: String, of name: String) {
        if numbers.count >= Self.mostNames, numbers[name] == nil { _ = numbers.popFirst() }
        lastNumber += 1
        numbers[name, default: [:]][variant] = lastNumber
    }

    /// The doubts about a name, to be settled; nil if there are none.
    func about(_ name: String) -> [String: Int]? { numbers[name] }

    /// Those variants were removed from the server. One whose store has failed since then stays doubtful.
    mutating func settle(_ doubts: [String: Int], about name: String) {
        numbers[name] = numbers[name]?.filter { doubts[$0.key] != $0.value }
        if numbers[name]?.isEmpty == true { numbers[name] = nil }
    }
}
