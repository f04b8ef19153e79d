/// The scripts that run inside the server. Nothing interrupts a script.
///
/// All keys begin with the prefix and the version of this format, here `P`:
///
/// | Key | Value |
/// |---|---|
/// | `P:e:NAME` | hash: for each variant the record, field `b` and the variant, and its head, field `h` and the variant |
/// | `P:g:GROUP` | sorted set: `NAME:VARIANT` of each entry of a tag, URL or host, by the time at which it ends |
/// | `P:log` | hash: a `token`, the number `n` of the last removal, the number `epoch` of the last removal of everything, the `run` of the server that made it, and the last 512 removals, fields `r` and the number |
/// | `P:gone:…` | a set that was removed and whose entries are being erased |
///
/// A head names the entry's groups, and the token and the epoch of the log when the entry was stored. An entry is valid
/// while the log has this token and epoch, and the set of each group contains the entry. So a removal takes effect as
/// soon as a set is removed, before the records are erased. If the server evicts a set or the log, entries become
/// misses; a removed entry is never served. A server that was restarted with what it had saved, or a replica that took
/// its place, may have forgotten removals. It has another `run`, so the next process that reads the log gives it a new
/// token; each process reads it once a second.
enum Script: String, CaseIterable {
    /// Returns the valid records of a name; an empty one in place of each that is longer than this process takes.
    /// Invalid ones are removed.
    case lookup = """
        local fields = redis.pcall('HGETALL', KEYS[2])
        if fields.err then
            redis.call('UNLINK', KEYS[2])
            return {}
        end
        if #fields == 0 then return {} end
        local log = redis.pcall('HMGET', KEYS[1], 'token', 'epoch')
        local current = not log.err and log[1] and log[2] and log[1] .. '.' .. log[2]
        local heads, found = {}, {}
        for i = 1, #fields, 2 do
            if string.sub(fields[i], 1, 1) == 'h' then heads[string.sub(fields[i], 2)] = fields[i + 1] end
        end
        for i = 1, #fields, 2 do
            local variant = string.sub(fields[i], 2)
            if string.sub(fields[i], 1, 1) == 'b' then
                local holds, isFirst = false, true
                for word in string.gmatch(heads[variant] or '', '%S+') do
                    if isFirst then
                        holds = word == current
                    else
                        local score = redis.pcall('ZSCORE', ARGV[1] .. ':g:' .. word, ARGV[2] .. ':' .. variant)
                        holds = type(score) == 'string'
                    end
                    isFirst = false
                    if not holds then break end
                end
                if not holds then
                    drop(KEYS[2], variant)
                else
                    found[#found + 1] = variant
                    found[#found + 1] = #fields[i + 1] <= tonumber(ARGV[3]) and fields[i + 1] or ''
                end
            end
        end
        return found
        """

    /// Stores, unless the log has a removal after the given position. Returns 1 if it stored. Of the other variants of
    /// the name it keeps those for which there is room, since a lookup transfers all of them.
    ///
    /// Redis does not tell which entries it evicts, and their members stay in the sets. So each store looks at four
    /// random members of each of its sets, and removes those whose entry is gone: of a set that gets a new member by
    /// each store, about a quarter is of evicted entries, whatever was stored before. For Redis's LRU `EXISTS` is no
    /// use of an entry, and a look into the hash would be one: so a variant that is removed takes its members along.
    case store = """
        local log = redis.pcall('HMGET', KEYS[1], 'token', 'n', 'epoch')
        if log.err or log[1] ~= ARGV[4] or log[2] ~= ARGV[5] then return 0 end
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        local ttl = tonumber(ARGV[6])
        local member = ARGV[2] .. ':' .. ARGV[3]
        local function keep(key)
            if redis.call('PTTL', key) < ttl then redis.call('PEXPIRE', key, ttl) end
        end
        local head = { ARGV[4] .. '.' .. log[3] }
        for i = 9, #ARGV do
            local group = ARGV[1] .. ':g:' .. ARGV[i]
            head[#head + 1] = ARGV[i]
            redis.call('ZADD', group, now + ttl, member)
            for _, old in ipairs(redis.call('ZRANGEBYSCORE', group, '-inf', now, 'LIMIT', 0, 20)) do
                redis.call('ZREM', group, old)
            end
            for _, other in ipairs(redis.call('ZRANDMEMBER', group, 4)) do
                local name = string.match(other, '^(%x+):')
                local isGone = not name or redis.call('EXISTS', ARGV[1] .. ':e:' .. name) == 0
                if isGone and other ~= member then redis.call('ZREM', group, other) end
            end
            keep(group)
        end
        local bytes, count = tonumber(ARGV[7]) - #ARGV[8], 31
        for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
            local variant = string.sub(field, 2)
            if string.sub(field, 1, 1) == 'b' and variant ~= ARGV[3] then
                local length = redis.call('HSTRLEN', KEYS[2], field)
                if length <= bytes and count > 0 then
                    bytes, count = bytes - length, count - 1
                else
                    drop(KEYS[2], variant)
                end
            end
        end
        redis.call('HSET', KEYS[2], 'h' .. ARGV[3], table.concat(head, ' '), 'b' .. ARGV[3], ARGV[8])
        keep(KEYS[2])
        return 1
        """

    /// Returns the position of the log, and its rows since the given position.
    case readChanges = """
        local log = redis.pcall('HMGET', KEYS[1], 'token', 'n', 'epoch', 'run')
        local last = not log.err and log[1] and log[2] and log[3] and log[4] == run() and tonumber(log[2])
        if not last or not string.find(log[2], '^%d+$') or last >= 2 ^ 53 then
            redis.call('UNLINK', KEYS[1])
            redis.call('HSET', KEYS[1], 'token', ARGV[1], 'n', 0, 'epoch', 0, 'run', run())
            log = { ARGV[1], '0' }
        end
        local reply = { log[1], log[2] }
        if log[1] == ARGV[2] then
            for k = math.max(tonumber(ARGV[3]) + 1, tonumber(log[2]) - 511), tonumber(log[2]) do
                reply[#reply + 1] = redis.call('HGET', KEYS[1], 'r' .. string.format('%d', k))
            end
        end
        return reply
        """

    /// Writes a removal to the log, and removes what its scope names: `name`, `variant`, `group`, `everything`, or
    /// nothing. A variant that is not there is not written to the log, since most were never there. (Another process
    /// may still have in memory what the server has evicted.)
    case remove = """
        if ARGV[3] == 'variant' then
            local count = drop(KEYS[2], ARGV[4])
            if count == 0 then return 0 end
            if type(count) == 'table' then redis.call('UNLINK', KEYS[2]) end
        end
        local log = redis.pcall('HMGET', KEYS[1], 'token', 'n', 'epoch')
        local last = not log.err and log[1] and log[2] and log[3] and tonumber(log[2])
        if not last or not string.find(log[2], '^%d+$') or last >= 2 ^ 53 then
            redis.call('UNLINK', KEYS[1])
            redis.call('HSET', KEYS[1], 'token', ARGV[1], 'n', 0, 'epoch', 0, 'run', run())
        end
        local n = redis.call('HINCRBY', KEYS[1], 'n', 1)
        redis.call('HSET', KEYS[1], 'r' .. string.format('%d', n), ARGV[2])
        redis.call('HDEL', KEYS[1], 'r' .. string.format('%d', n - 512))
        if ARGV[3] == 'everything' then
            redis.call('HSET', KEYS[1], 'epoch', n)
        elseif ARGV[3] == 'name' then
            redis.call('UNLINK', KEYS[2])
        elseif ARGV[3] == 'group' then
            local ttl = redis.call('PTTL', KEYS[2])
            if redis.call('EXISTS', KEYS[3]) == 0 then
                redis.pcall('RENAME', KEYS[2], KEYS[3])
            elseif ttl > 0 then
                redis.call('ZUNIONSTORE', KEYS[3], 2, KEYS[2], KEYS[3])
                redis.call('PEXPIRE', KEYS[3], ttl)
                redis.call('UNLINK', KEYS[2])
            end
            return redis.call('EXISTS', KEYS[3])
        end
        return 0
        """

    /// Removes a variant of a name, without a word in the log.
    case erasure = """
        return drop(KEYS[1], ARGV[1])
        """

    /// Erases some of the entries of a removed set, except those that were stored again. Returns how many it read.
    case erase = """
        local popped = redis.call('ZPOPMIN', KEYS[1], 200)
        for i = 1, #popped, 2 do
            local name, variant = string.match(popped[i], '^(%x+):(%x+)$')
            if name and not redis.call('ZSCORE', KEYS[2], popped[i]) then
                local key = ARGV[1] .. ':e:' .. name
                local head = redis.call('HGET', key, 'h' .. variant)
                if head and string.find(head, ARGV[2], 1, true) then
                    drop(key, variant)
                end
            end
        end
        return #popped / 2
        """

    /// Erases those of the given keys whose entries were all stored before the last removal of everything.
    case sweep = """
        local log = redis.call('HMGET', KEYS[1], 'token', 'epoch')
        local current = (log[1] or '') .. '.' .. (log[2] or '') .. ' '
        for i = 2, #KEYS do
            local isCurrent = false
            for _, field in ipairs(redis.call('HKEYS', KEYS[i])) do
                if string.sub(field, 1, 1) == 'h' then
                    local head = redis.call('HGET', KEYS[i], field)
                    if string.sub(head .. ' ', 1, #current) == current then isCurrent = true end
                end
            end
            if not isCurrent then redis.call('UNLINK', KEYS[i]) end
        end
        return 0
        """

    /// What the server is given.
    var text: String { Self.drop + Self.run + rawValue }

    /// What tells this run of the server from others; empty if the server does not say it.
    private static let run = """
        local function run()
            local info = redis.pcall('INFO', 'server')
            return type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
        end

        """

    /// Removes a variant of the name with this key, and its members from the sets that its head names. Returns how many
    /// fields it removed, or an error if the key is no hash.
    private static let drop = """
        local function drop(key, variant)
            local root, name = string.match(key, '^(.*):e:(.*)$')
            local head = redis.pcall('HGET', key, 'h' .. variant)
            for group in string.gmatch(type(head) == 'string' and head or '', '%S+') do
                redis.pcall('ZREM', root .. ':g:' .. group, name .. ':' .. variant)
            end
            return redis.pcall('HDEL', key, 'h' .. variant, 'b' .. variant)
        end

        """
}
