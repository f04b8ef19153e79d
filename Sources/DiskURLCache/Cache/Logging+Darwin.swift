#if canImport(Darwin)
    import Foundation
    import os

    // Never run by the project's tests: written from Apple's documentation.

    extension DiskURLCache {
        /// Writes each event to the unified log, and a signpost for each load, until the returned task is cancelled.
        /// URLs are marked private.
        /// - Parameters:
        ///   - subsystem: of the log, as in `Logger`.
        ///   - category: of the log.
        @discardableResult
        public func logEvents(subsystem: String, category: String = "DiskURLCache") -> Task<Void, Never> {
            let logger = Logger(subsystem: subsystem, category: category)
            let signposter = OSSignposter(subsystem: subsystem, category: category)
            let events = events()
            return Task.detached(priority: .utility) {
                for await event in events {
                    switch event {
                    case .load(let report):
                        logger.debug(
                            "\(report.cacheStatus, privacy: .public) \(report.url?.absoluteString ?? "", privacy: .private)"
                        )
                        signposter.emitEvent("load", "\(report.cacheStatus, privacy: .public)")
                    case .problem(let error):
                        logger.error("\(error.description, privacy: .private)")
                    default:
                        logger.debug("\(String(describing: event), privacy: .private)")
                    }
                }
            }
        }
    }
#endif
