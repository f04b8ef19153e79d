// The names of the cache's values as callers write them: `DiskURLCache.Event` and so on. The values themselves live in the
// folders that make them, which know nothing of this class.

extension DiskURLCache {
    /// See ``CacheEvent``.
    public typealias Event = CacheEvent
    /// See ``CacheLoadReport``.
    public typealias LoadReport = CacheLoadReport
    /// See ``CacheNotStoredReason``.
    public typealias NotStoredReason = CacheNotStoredReason
    /// See ``CacheError``.
    public typealias Error = CacheError
    /// See ``CacheLayer``.
    public typealias Layer = CacheLayer
    /// See ``CacheStatistics``.
    public typealias Statistics = CacheStatistics
    /// See ``CacheRule``.
    public typealias Rule = CacheRule
    /// See ``CacheRuleError``.
    public typealias RuleError = CacheRuleError
    /// See ``CacheTreatment``.
    public typealias Treatment = CacheTreatment
    /// See ``CacheEntry``.
    public typealias Entry = CacheEntry
    /// See ``CacheAnswer``.
    public typealias Answer = CacheAnswer
    /// See ``CacheFileProtection``.
    public typealias FileProtection = CacheFileProtection
}
