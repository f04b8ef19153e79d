/// The result of a write.
package enum DiskWriteResult: Sendable, Hashable {
    case written
    /// A different process stored a later response of the same variant meanwhile: that response stays.
    case superseded
    case dropped(DiskURLCache.Reason)
}
