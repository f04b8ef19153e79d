/// The result of a write.
package enum DiskWriteResult: Sendable, Hashable {
    case written
    /// Another process stored a newer response of the same variant meanwhile. That one is kept.
    case superseded
    case dropped(DiskURLCache.Reason)
}
