/// Values of which the smallest one is at hand. Adding one and taking the smallest take the logarithm of their number.
struct Heap<Value: Comparable> {
    /// No value is larger than the two below it, at twice its place plus 1 and 2.
    private var values: [Value] = []

    var count: Int { values.count }

    var smallest: Value? { values.first }

    mutating func insert(_ value: Value) {
        values.append(value)
        var place = values.count - 1
        while place > 0, value < values[(place - 1) / 2] {
            values.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    mutating func removeSmallest() {
        guard let last = values.popLast(), !values.isEmpty else { return }
        values[0] = last
        var place = 0
        while true {
            var next = place
            for below in [2 * place + 1, 2 * place + 2] where below < values.count && values[below] < values[next] {
                next = below
            }
            if next == place { return }
            values.swapAt(place, next)
            place = next
        }
    }

    mutating func removeAll(where isRemoved: (Value) -> Bool) {
        let kept = values.filter { !isRemoved($0) }
        values = []
        for value in kept { insert(value) }
    }
}
