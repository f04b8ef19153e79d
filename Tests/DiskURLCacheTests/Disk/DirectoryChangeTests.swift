import Testing

@testable import DiskURLCache

@Suite struct DirectoryChangeTests {
    /// A row of which one bit differs is no row.
    @Test func rowsAreWhole() {
        let key = RequestKey.test("a").name
        let changes: [DirectoryChange] = [
            .storing(key), .stored(key), .removed(key), .removedResource(7), .removedAll, .noticed,
        ]
        for change in changes {
            var bytes = change.row(by: 5 << 8)
            #expect(bytes.count == DirectoryChange.rowLength)
            let decoded = bytes.withUnsafeBytes { DirectoryChange.decode($0) }
            #expect(decoded?.change == change && decoded?.writer == 5 << 8)
            for bit in 0..<bytes.count * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8)
                #expect(bytes.withUnsafeBytes { DirectoryChange.decode($0) } == nil)
                bytes[bit / 8] ^= 1 << (bit % 8)
            }
        }
    }
}
