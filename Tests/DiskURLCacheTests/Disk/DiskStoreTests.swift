import Foundation
import Testing

@testable import DiskURLCache

@Suite("Disk store") struct DiskStoreTests {
}
