import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOFoundationCompat

/// Entries in a Redis server, which processes on many machines share.
///
/// ```swift
/// var settings = RedisStorage.Configuration(.host("redis.internal"), prefix: "shop")
/// settings.password = secret
/// settings.tls = .makeClientConfiguration()
/// let cache = DiskURLCache(configuration: .init(memoryCapacity: 64 << 20, redis: try RedisStorage(settings)))
/// ```
///
/// If the server is slow, down, full, or not a Redis server, a call is a miss after `Configuration.timeout` at the
/// latest. Then no command is sent for `Configuration.pause`.
///
/// Use it as the `diskStorage` of a shared cache, and make one `RedisStorage` for each cache. Redis itself evicts
/// (`maxmemory-policy allkeys-lru`).
public final class RedisStorage: DiskURLCache.EntryStorage {
    private let configuration: Configuration
    private let server: RedisConnections
    private let secret: RecordSecret?
    /// The name of this process in the log of removals.
    private let writer = String(UInt64.random(in: .min ... .max), radix: 16)
    /// Failures are reported on this queue, since a listener may call the cache.
    private let reporting = DispatchQueue(label: "RedisStorage.failures")
    /// Removed entries are erased on this queue.
    private let erasing = DispatchQueue(label: "RedisStorage.erasing", qos: .utility)
    private let state = NIOLockedValueBox(State())

    /// The position up to which the log of removals was read.
    private struct Position: Equatable {
        var token: String
        var number: Int

        /// Fits no log: nobody knows which removals there were since then.
        static let unknown = Position(token: "", number: 0)
    }

    private struct State {
        /// The position in the log up to which the cache knows the removals by other processes. Nil before the log is
        /// read. Unknown if it could not be read then, until a check succeeds.
        var position: Position?
        /// Removals that have not reached the server yet, in order.
        var delayed: [(number: Int, removal: Removal)] = []
        var lastNumber = 0
        var doubts = Doubts()
        var isFull = false
        var isSweepQueued = false
        var memory = Memory()
    }

    private struct Memory {
        var used = 0
        var limit = Int.max
        var isAskedAt: NIODeadline?
    }

    private struct Removal {
        /// The scope, with the names that the server knows.
        var scope: DiskURLCache.Criteria.Scope
        /// The message for other processes.
        var message: String
        /// The name that the set of a removed group gets. It stays the same when the removal is sent again: the server
        /// may have made it although its reply did not come.
        var gone: String

        var isOfVariant: Bool { if case .name(_, _?) = scope { true } else { false } }
    }

    /// The limit of delayed removals. If there are more, everything is removed instead. The log keeps the same number.
    private static let mostDelayed = 512
    /// The limit of those of one variant, which do not count above. Each response that is not for the server is one,
    /// since the server may have an older response: that is no reason to remove everything.
    private static let mostDelayedVariants = 2_048
    /// The limit of an entry's groups: its URL, its host, and 128 tags. An origin says how many `Cache-Groups` a
    /// response has, and each is one more set for a store and a lookup. They are scripts, during which the server
    /// answers nobody else: with 500 groups for 7 to 25 ms.
    private static let mostGroups = 130
    /// The seconds that `flush` waits until removed entries are erased.
    private static let patience = 1.0
    /// The possible numbers of removals. A log never has more; any other number is not from a log.
    private static let numbers = 0...(1 << 53)

    /// Makes the storage, which connects in the background.
    /// - Throws: `RedisFailure` if the TLS configuration cannot be used, or the secret is too short. A server that
    ///   cannot be reached is no error here.
    public init(_ configuration: Configuration) throws(RedisFailure) {
        if let secret = configuration.secret, secret.count < RecordSecret.shortest {
            throw RedisFailure(
                .shortSecret,
                "The secret has \(secret.count) bytes and can be guessed. Use 32 random bytes, at least \(RecordSecret.shortest), or nil for none. Is the variable set that it comes from?"
            )
        }
        self.configuration = configuration
        secret = configuration.secret.map { RecordSecret($0) }
        server = try RedisConnections(configuration)
        guard configuration.sendsPasswordInTheClear else { return }
        report(
            RedisFailure(
                .passwordInTheClear,
                "The password goes to \(configuration.address) unencrypted. Set `tls`: `.makeClientConfiguration()` checks the server, too."
            ))
    }

    deinit { server.close() }

    // MARK: Names

    // "1" is the version of the format.
    private var root: String { "\(configuration.prefix):1" }
    private var log: String { "\(root):log" }
    /// - Parameter name: as `hidden` made it.
    private func key(of name: String) -> String { "\(root):e:\(name)" }
    private func key(ofGroup group: String) -> String { "\(root):g:\(group)" }
    /// The name of a key or a group as the server knows it.
    private func hidden(_ name: String, _ purpose: String = "name") -> String { secret?.name(name, purpose) ?? name }
    /// A variant is a digest of what the request had in the fields of `Vary`, which may be guessed.
    /// - Parameter name: as `hidden` made it.
    private func hidden(variant: String, of name: String) -> String {
        secret?.name("\(name):\(variant)", "variant") ?? variant
    }
    private func freshToken() -> String { String(UInt64.random(in: .min ... .max), radix: 16) }

    // MARK: Asking

    private func report(_ failure: RedisFailure) {
        guard let onFailure = configuration.onFailure else { return }
        reporting.async { onFailure(failure) }
    }

    /// The replies to commands; nil after a failure, which is reported. Removals that the server does not know yet are
    /// sent first.
    private func ask(_ commands: [RESPCommand]) -> [RESPValue]? {
        let all = state.withLockedValue { $0.delayed }
        let delayed = all.prefix(Self.mostDelayed)
        let isLastPart = delayed.count == all.count
        guard !delayed.isEmpty || !commands.isEmpty else { return [] }
        let replies: [RESPValue]
        switch server.call(delayed.map { command($0.removal) } + (isLastPart ? commands : [])) {
        case .replies(let given): replies = given
        case .failed(let failure, let isNew):
            if isNew { report(failure) }
            return nil
        case .paused: return nil
        }
        for case .error(let text) in replies where !text.contains("OOM") {
            let failure = RedisFailure.refusal(by: configuration.address, text)
            // If the server has forgotten the scripts, they are loaded again on the next connection.
            if text.hasPrefix("NOSCRIPT") { server.reset(failure) }
            if server.pause() { report(failure) }
            return nil
        }
        if let last = delayed.last {
            let isFull = replies.prefix(delayed.count).contains(where: \.isError)
            if isFull, !forgetLog() { return nil }
            state.withLockedValue { state in state.delayed.removeAll { $0.number <= last.number } }
            // What came with them was found before everything was removed.
            if isFull { return ask(commands) }
            for (sent, reply) in zip(delayed, replies) { eraseRemoved(sent.removal, reply) }
        }
        // All parts together might not arrive within the timeout, and then never would.
        return isLastPart ? Array(replies.dropFirst(delayed.count)) : ask(commands)
    }

    /// The same for commands about a name. The variants of the name that are doubtful are removed first.
    private func ask(_ commands: [RESPCommand], about name: String) -> [RESPValue]? {
        let doubts = state.withLockedValue { $0.doubts.about(name) } ?? [:]
        let before = doubts.keys.flatMap { self.commands(removing: $0, of: name) }
        guard let replies = ask(before + commands) else { return nil }
        if !doubts.isEmpty { state.withLockedValue { $0.doubts.settle(doubts, about: name) } }
        return Array(replies.dropFirst(before.count))
    }

    // MARK: Lookups

    public func entries(named name: String) -> [DiskURLCache.Entry]? {
        let name = hidden(name)
        let command = RESPCommand(
            .lookup, keys: [log, key(of: name)], root, name, String(configuration.maximumEntrySize))
        guard let reply = ask([command], about: name)?.last else { return nil }
        let found = reply.list ?? []
        return stride(from: 0, to: found.count - 1, by: 2).compactMap { index in
            guard let variant = found[index].text, case .bytes(let record) = found[index + 1],
                record.readableBytes > 0
            else { return nil }
            if let entry = entry(in: record, of: name, variant), hidden(variant: entry.variant, of: name) == variant {
                return entry
            }
            _ = ask([erasure(of: variant, key: key(of: name))])
            report(
                RedisFailure(
                    .damaged,
                    "An entry in \(configuration.address) was damaged or is not ours, and was removed. Does another program write keys that "
                        + "begin with \(root)?"))
            return nil
        }
    }

    /// Nil if the bytes were not stored there by a process with the secret.
    private func entry(in record: ByteBuffer, of name: String, _ variant: String) -> DiskURLCache.Entry? {
        guard let secret else { return DiskURLCache.Entry(encoded: Data(buffer: record)) }
        return secret.open(Data(buffer: record), at: "\(name):\(variant)").flatMap { DiskURLCache.Entry(encoded: $0) }
    }

    // MARK: Storing

    /// Stores the entry, unless another process has removed it meanwhile.
    public func store(_ entry: DiskURLCache.Entry, named name: String) {
        let name = hidden(name)
        let variant = hidden(variant: entry.variant, of: name)
        guard entry.groups.count <= Self.mostGroups else {
            report(
                RedisFailure(
                    .tooLarge,
                    "An entry with more than 128 tags and groups was not stored in \(configuration.address)."))
            return replaceByNothing(variant, of: name)
        }
        let encoded = entry.encoded().map { record in
            secret?.seal(record, bodyLength: entry.bytes, at: "\(name):\(variant)") ?? record
        }
        guard let record = encoded, record.count <= configuration.maximumEntrySize else {
            report(
                RedisFailure(
                    .tooLarge,
                    "An entry of \(entry.bytesInMemory) bytes was not stored in \(configuration.address): `maximumEntrySize` is "
                        + "\(configuration.maximumEntrySize)."))
            return replaceByNothing(variant, of: name)
        }
        guard var position = position() else { return doubt(variant, of: name) }
        // A round fails if another process removed a different entry meanwhile.
        for _ in 0..<4 {
            // Only what is doubtful is removed. This also keeps an earlier store that is still on its way from arriving
            // after this one, since it names an older position in the log.
            guard ask([], about: name) != nil else { return doubt(variant, of: name) }
            guard let reply = ask([command(storing: entry, record, as: variant, of: name, at: position)])?.first else {
                return doubt(variant, of: name)
            }
            switch reply {
            case .number(1):
                state.withLockedValue { $0.isFull = false }
                return
            case .error:
                reportFull()
                return replaceByNothing(variant, of: name)
            default:
                guard let (now, rows) = readChanges(since: position) else { return doubt(variant, of: name) }
                // Another process has removed this entry meanwhile, so it is not stored.
                guard let rows, !rows.contains(where: { $0.concerns(entry) }) else {
                    return
                }
                position = now
            }
        }
        replaceByNothing(variant, of: name)
    }

    private func command(
        storing entry: DiskURLCache.Entry, _ record: Data, as variant: String, of name: String, at position: Position
    ) -> RESPCommand {
        let head = [
            root, name, variant, position.token, String(position.number), String(milliseconds(of: entry)),
            String(configuration.maximumEntrySize),
        ]
        return RESPCommand(
            .store, keys: [log, key(of: name)],
            head.map { ByteBuffer(string: $0) } + [ByteBuffer(data: record)]
                + entry.groups.map { ByteBuffer(string: hidden($0, "group")) })
    }

    /// How long Redis keeps an entry.
    private func milliseconds(of entry: DiskURLCache.Entry) -> Int {
        let year = 366 * 86_400.0
        // Redis knows no pins and may evict a pinned entry like any other.
        let seconds = entry.isPinned ? max(configuration.lifetime, year) : configuration.lifetime
        // This is also right for NaN.
        return Int(seconds > 1 ? min(seconds, 100 * year) * 1_000 : 1_000)
    }

    /// Does not store the entry, and removes the one that it would have replaced.
    private func replaceByNothing(_ variant: String, of name: String) {
        if ask([erasure(of: variant, key: key(of: name))]) == nil { doubt(variant, of: name) }
    }

    /// It is not known whether the store succeeded. The entry is removed before the name is looked up again.
    private func doubt(_ variant: String, of name: String) {
        state.withLockedValue { $0.doubts.add(variant, of: name) }
    }

    private func reportFull() {
        let isNew = state.withLockedValue { state in
            defer { state.isFull = true }
            return !state.isFull
        }
        guard isNew else { return }
        report(
            RedisFailure(
                .full,
                "The memory of \(configuration.address) is full, and entries are not stored. Set `maxmemory-policy allkeys-lru`, so that "
                    + "it evicts what was not used for the longest time."))
    }

    // MARK: Removing

    public func removeEntries(matching criteria: DiskURLCache.Criteria) {
        let removal = removal(criteria)
        let command = command(removal)
        let replies = if case .name(let name, _) = removal.scope { ask([command], about: name) } else { ask([command]) }
        guard let reply = replies?.last else { return delay(removal) }
        if reply.isError {
            if !forgetLog() { delay(removal) }
            return
        }
        eraseRemoved(removal, reply)
        if removal.scope == .anywhere, !removeOneByOne(criteria) { delay(removal) }
    }

    /// Erases in the background what the server has removed already.
    private func eraseRemoved(_ removal: Removal, _ reply: RESPValue) {
        switch removal.scope {
        case .group(let group):
            if case .number(1) = reply { erasing.async { [self] in erase(removal.gone, group) } }
        case .everything: sweepLater()
        default: break
        }
    }

    private func removal(_ criteria: DiskURLCache.Criteria) -> Removal {
        let scope: DiskURLCache.Criteria.Scope =
            switch criteria.scope {
            case .name(let name, let variant):
                .name(hidden(name), variant: variant.map { hidden(variant: $0, of: hidden(name)) })
            case .group(let group): .group(hidden(group, "group"))
            case .everything: .everything
            default: .anywhere
            }
        return Removal(
            scope: scope, message: secret?.seal(criteria.message) ?? criteria.message,
            gone: "\(root):gone:\(freshToken())")
    }

    private func command(_ removal: Removal) -> RESPCommand {
        let (keys, kind, variant) =
            switch removal.scope {
            case .name(let name, nil): ([key(of: name)], "name", "")
            case .name(let name, let variant?): ([key(of: name)], "variant", variant)
            case .group(let group): ([key(ofGroup: group), removal.gone], "group", "")
            case .everything: ([], "everything", "")
            default: ([], "", "")
            }
        let row = ByteBuffer(string: "\(writer) \(removal.message)")
        return RESPCommand(
            .remove, keys: [log] + keys,
            [ByteBuffer(string: freshToken()), row, ByteBuffer(string: kind), ByteBuffer(string: variant)])
    }

    /// Removes a variant whose state is unknown. The row that this adds to the log names no entry; it only advances the
    /// log, so that a late store has no effect. (A full server accepts neither the row nor the store.)
    private func commands(removing variant: String, of name: String) -> [RESPCommand] {
        [
            RESPCommand(.remove, keys: [log], freshToken(), "\(writer) ", "", ""),
            erasure(of: variant, key: key(of: name)),
        ]
    }

    private func erasure(of variant: String, key: String) -> RESPCommand {
        RESPCommand(.erasure, keys: [key], variant)
    }

    /// Only the first of the delayed removals is reported.
    private func delay(_ removal: Removal) {
        // It would need a search, which can fail again. Everything is removed in one step.
        let removal = removal.scope == .anywhere ? self.removal(.everything) : removal
        let isFirst = state.withLockedValue { state in
            let isFirst = state.delayed.isEmpty
            state.lastNumber += 1
            // One that is being sent may come before what it has to remove now.
            state.delayed.removeAll { $0.removal.scope == removal.scope }
            let count = state.delayed.count { $0.removal.isOfVariant == removal.isOfVariant }
            if count < (removal.isOfVariant ? Self.mostDelayedVariants : Self.mostDelayed) {
                state.delayed.append((state.lastNumber, removal))
            } else if case .name(let name, let variant?) = removal.scope {
                // This process removes it before it uses the name again.
                state.doubts.add(variant, of: name)
            } else {
                state.delayed = [(state.lastNumber, self.removal(.everything))]
            }
            return isFirst
        }
        guard isFirst else { return }
        report(
            RedisFailure(
                .removalDelayed,
                "A removal did not reach \(configuration.address). It is made up for before this storage asks for anything else, and so are "
                    + "those that follow it; other processes may use the entries until then."))
    }

    /// A full server cannot write a removal to the log. Without a log no entry is valid, so removing the log removes
    /// everything.
    private func forgetLog() -> Bool {
        reportFull()
        guard case .replies(let replies) = server.call([RESPCommand("UNLINK", log)]), replies.first?.isError == false
        else { return false }
        sweepLater()
        return true
    }

    /// Erases the entries of a group that was removed. They are not served any more; if erasing is interrupted, they
    /// stay until they expire.
    private func erase(_ gone: String, _ group: String) {
        for _ in 0..<configuration.mostSteps {
            let command = RESPCommand(.erase, keys: [gone, key(ofGroup: group)], root, group)
            guard case .number(let count)? = ask([command])?.first, count > 0 else { return }
        }
        reportEndOfSteps()
    }

    /// One sweep that has not begun is enough, however many removals there are.
    private func sweepLater() {
        let isQueued = state.withLockedValue { state in
            defer { state.isSweepQueued = true }
            return state.isSweepQueued
        }
        guard !isQueued else { return }
        erasing.async { [self] in
            state.withLockedValue { $0.isSweepQueued = false }
            sweep()
        }
    }

    /// Erases the entries that were stored before everything was removed; see `erase`.
    private func sweep() {
        _ = forEachKey { keys in
            ask([RESPCommand(.sweep, keys: [log] + keys, [])]) != nil
        }
    }

    /// Reads every entry, and removes those that match. False if the server refused.
    private func removeOneByOne(_ criteria: DiskURLCache.Criteria) -> Bool {
        forEachKey { keys in
            stride(from: 0, to: keys.count, by: 16).allSatisfy { start in
                let keys = keys[start...].prefix(16)
                let lookups = keys.map {
                    RESPCommand(
                        .lookup, keys: [log, $0], root, String($0.dropFirst(key(of: "").count)),
                        String(configuration.maximumEntrySize))
                }
                guard let replies = ask(lookups) else { return false }
                let erasures = zip(keys, replies).flatMap { key, reply in
                    let found = reply.list ?? []
                    return stride(from: 0, to: found.count - 1, by: 2).compactMap { index -> RESPCommand? in
                        guard let variant = found[index].text, case .bytes(let record) = found[index + 1] else {
                            return nil
                        }
                        // An entry that cannot be read, or is too long for this process, is removed as well.
                        let name = String(key.dropFirst(self.key(of: "").count))
                        if let entry = entry(in: record, of: name, variant), !criteria.matches(entry) {
                            return nil
                        }
                        return erasure(of: variant, key: key)
                    }
                }
                return ask(erasures) != nil
            }
        }
    }

    /// Calls `body` with the keys of all entries, some at a time.
    private func forEachKey(_ body: ([String]) -> Bool) -> Bool {
        let special: Set<Character> = ["*", "?", "[", "]", "\\"]
        let pattern = key(of: "").map { special.contains($0) ? "\\\($0)" : String($0) }.joined() + "*"
        var cursor = "0"
        for _ in 0..<configuration.mostSteps {
            guard let reply = ask([RESPCommand("SCAN", cursor, "MATCH", pattern, "COUNT", "500")])?.first?.list,
                reply.count == 2, let next = reply[0].text, let keys = reply[1].list?.compactMap(\.text)
            else { return false }
            if !keys.isEmpty, !body(keys) { return false }
            cursor = next
            if cursor == "0" { return true }
        }
        reportEndOfSteps()
        return false
    }

    private func reportEndOfSteps() {
        report(
            RedisFailure(
                .tooManyKeys,
                "\(configuration.address) has more keys than are searched for removed entries. Those that were not found take up memory until "
                    + "they expire; they are not served. A database of the cache's own has fewer keys."))
    }

    // MARK: Removals by other processes

    public var name: String { "redis" }

    public var isShared: Bool { true }

    public var isForSeveralUsers: Bool { true }

    private struct Row {
        var isOthers: Bool
        /// Nil if this version does not know the message.
        var message: String?

        func concerns(_ entry: DiskURLCache.Entry) -> Bool { isOthers && message.map(entry.isConcerned) != false }
    }

    /// The log's position, and its rows since `position`; nil if they are not known.
    private func readChanges(since position: Position?) -> (position: Position, rows: [Row]?)? {
        let command = RESPCommand(
            .readChanges, keys: [log], freshToken(), position?.token ?? "", String(position?.number ?? 0))
        guard let reply = ask([command])?.first?.list, reply.count >= 2, let token = reply[0].text,
            let number = reply[1].text.flatMap({ Int($0) }), Self.numbers.contains(number)
        else { return nil }
        let now = Position(token: token, number: number)
        guard let position, position.token == token, reply.count - 2 == number - position.number else {
            return (now, nil)
        }
        return (now, reply.dropFirst(2).map { row($0) })
    }

    private func row(_ value: RESPValue) -> Row {
        guard case .bytes(let bytes) = value else { return Row(isOthers: true) }
        let view = bytes.readableBytesView
        guard let space = view.firstIndex(of: UInt8(ascii: " ")) else { return Row(isOthers: true) }
        let isOthers = String(decoding: view[..<space], as: UTF8.self) != writer
        let message = String(decoding: view[view.index(after: space)...], as: UTF8.self)
        return Row(isOthers: isOthers && !message.isEmpty, message: secret.map { $0.open(message) } ?? message)
    }

    /// The position in the log that a store names; nil if the entry may have been removed since it was asked for.
    private func position() -> Position? {
        if let position = state.withLockedValue({ $0.position }) { return position == .unknown ? nil : position }
        let now = readChanges(since: nil)?.position ?? .unknown
        return state.withLockedValue { state in
            if state.position == nil { state.position = now }
            return state.position == .unknown ? nil : state.position
        }
    }

    public func removalsByOthers() -> [String]? {
        let last = state.withLockedValue { $0.position }
        guard let (now, rows) = readChanges(since: last) else {
            if last == nil { state.withLockedValue { $0.position = .unknown } }
            return []
        }
        let isFirst = state.withLockedValue { state in
            defer { state.position = now }
            return state.position == nil
        }
        if isFirst { return [] }
        guard let rows else { return nil }
        let others = rows.filter(\.isOthers)
        let messages = others.compactMap(\.message)
        return messages.count == others.count ? messages : nil
    }

    // MARK: Size

    private func askMemory(after seconds: Int64) -> Memory {
        let known = state.withLockedValue { state in
            defer { state.memory.isAskedAt = .now() }
            return state.memory
        }
        if let time = known.isAskedAt, NIODeadline.now() < time + .seconds(seconds) {
            state.withLockedValue { $0.memory.isAskedAt = time }
            return known
        }
        guard case .replies(let replies) = server.call([RESPCommand("INFO", "memory")]), let text = replies.first?.text
        else { return known }
        func number(_ name: String) -> Int? {
            text.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name + ":") }
                .flatMap { Int($0.dropFirst(name.count + 1)) }.map { min(max(0, $0), 1 << 53) }
        }
        return state.withLockedValue { state in
            state.memory.used = number("used_memory") ?? 0
            state.memory.limit = number("maxmemory").flatMap { $0 == 0 ? nil : $0 } ?? .max
            return state.memory
        }
    }

    public var largestEntry: Int { configuration.maximumEntrySize }

    /// The server's `maxmemory`, read at most a minute ago; `Int.max` if the server has no limit or does not reply.
    public var capacity: Int { askMemory(after: 60).limit }

    /// The memory that the server uses for all its data, read at most a second ago.
    public var usage: Int { askMemory(after: 1).used }

    /// Sends the server the removals that it does not know yet, and returns when the removed entries are erased, or
    /// after a second: then they are erased in the background, and are not served meanwhile. How durable entries are
    /// depends on the server.
    public func flush() {
        if state.withLockedValue({ !$0.delayed.isEmpty }) { _ = ask([]) }
        let isErased = DispatchSemaphore(value: 0)
        erasing.async { isErased.signal() }
        _ = isErased.wait(timeout: .now() + Self.patience)
    }
}

extension RedisStorage: CustomReflectable {
    /// Without properties, so that `dump` prints no secret.
    public var customMirror: Mirror {
        Mirror(self, children: [Mirror.Child](), ancestorRepresentation: .suppressed)
    }
}

extension RESPValue {
    fileprivate var isError: Bool {
        if case .error = self { true } else { false }
    }
}

extension DiskURLCache.Configuration {
    /// A shared cache (RFC 9111) in memory and in Redis, without a directory. Responses for a single user are not
    /// stored.
    public init(memoryCapacity: Int = 16 << 20, redis: RedisStorage) {
        self.init(memoryCapacity: memoryCapacity)
        diskStorage = redis
        isShared = true
    }
}
