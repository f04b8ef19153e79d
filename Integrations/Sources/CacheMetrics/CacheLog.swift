import DiskURLCache
import Logging

extension DiskURLCache.Configuration {
    /// Sends what the library tells developers, such as a rule that matches nothing, to a logger on level `warning`,
    /// instead of to standard error (`log`).
    public mutating func sendLog(to logger: Logger) {
        log = { logger.warning("\($0)") }
    }
}
