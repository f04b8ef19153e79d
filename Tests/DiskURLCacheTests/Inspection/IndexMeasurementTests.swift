import Foundation
import Testing

@_spi(Measuring) @testable import DiskURLCache

@Suite struct IndexMeasurementTests {
    @Test func whatIsSavedIsLoaded() throws {
        let scratch = try ScratchDirectory()
        let measurement = IndexMeasurement(entries: 1_000, directory: scratch.url)
        #expect(measurement.load() == 0)
        #expect(measurement.save())
        #expect(measurement.load() == 1_000)
    }
}
