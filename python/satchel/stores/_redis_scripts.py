"""What Redis and Valkey run: one script an operation, each over the keys of one hash slot.

A session is one hash, so that it expires, is evicted or deleted whole. Its fields:

=============  ===================================================================
``f``          the format of the hash
``i u p``      session id, user id, parent
``n l d``      version, length, how often the log was cut
``c t s x``    made, changed, time to live, end: seconds
``z y h``      token of the lease, its end in microseconds, who took it
``w``          id of the newest write of each slot, so that one sent twice is done once
``e<number>``  an entry: kind, coding, length of the key plus one (4 bytes), key, payload
``k<key>``     that an entry with this key is there
``v<name>``    a value;  ``V<name>`` its version and the id of its write
``P<pointer>`` a page
=============  ===================================================================

Every script first says how things stand: ``ok``, ``none``, ``newer``, ``user``, ``lost``
(the lease), ``conflict``, ``exists`` or ``corrupt``.
"""

from __future__ import annotations

from typing import Final

from satchel.stores._write_ids import ID_BYTES, REMEMBERED, SLOT_BYTES

__all__ = [
    "ADMIT",
    "APPEND",
    "BRANCH",
    "DELAY",
    "DELETE",
    "FORGET",
    "FORMAT",
    "GET",
    "INFO",
    "LEASE",
    "LIST",
    "NAMES",
    "OPEN",
    "PUT_PAGES",
    "PUT_VALUE",
    "READ",
    "RELEASE",
    "RENEW",
    "STAGE",
    "TRUNCATE",
]

FORMAT: Final = 1
"""The format of a session's hash."""

_COMMON: Final = f"""
local key = KEYS[1]
local function number(value) return string.format('%.0f', value) end
local function seconds()
    local t = redis.call('TIME')
    return t[1] .. '.' .. string.format('%06d', tonumber(t[2]))
end
local function info()
    local found = redis.call('HMGET', key, 'i', 'u', 'n', 'l', 'c', 't', 'x', 'p')
    table.insert(found, 1, 'ok')
    return found
end
local function micros()
    local t = redis.call('TIME')
    return tonumber(t[1]) * 1000000 + tonumber(t[2])
end
local function has_lost(token)
    if token == '' then return false end
    local held, ends = unpack(redis.call('HMGET', key, 'z', 'y'))
    return held ~= token or tonumber(ends) <= micros()
end
local function wrong()
    local f = redis.call('HGET', key, 'f')
    if not f then return {{'none'}} end
    if tonumber(f) > {FORMAT} then return {{'newer', f}} end
end
local function renew()
    local ttl = redis.call('HGET', key, 's')
    if ttl then
        local ends = tonumber(seconds()) + tonumber(ttl)
        redis.call('HSET', key, 'x', string.format('%.6f', ends))
        redis.call('PEXPIREAT', key, number(math.floor(ends * 1000)))
    end
end
local function is_done(write)
    local writes = redis.call('HGET', key, 'w') or ''
    for at = 1, #writes, {ID_BYTES} do
        if string.sub(writes, at, at + {ID_BYTES - 1}) == write then return true end
    end
    return false
end
local function note(write)
    local writes = redis.call('HGET', key, 'w') or ''
    local slot = string.sub(write, 1, {SLOT_BYTES})
    for at = 1, #writes, {ID_BYTES} do
        if string.sub(writes, at, at + {SLOT_BYTES - 1}) == slot then
            writes = string.sub(writes, 1, at - 1) .. string.sub(writes, at + {ID_BYTES})
            break
        end
    end
    redis.call('HSET', key, 'w', string.sub(writes .. write, -{ID_BYTES * REMEMBERED}))
end
local bad = wrong()
"""

OPEN: Final = (
    _COMMON
    + """
if bad and bad[1] ~= 'none' then return bad end
if bad then
    local now = seconds()
    redis.call('HSET', key, 'f', ARGV[1], 'i', ARGV[2], 'n', 0, 'l', 0, 'd', 0, 'c', now, 't', now)
    if ARGV[3] ~= '' then redis.call('HSET', key, 'u', string.sub(ARGV[3], 2)) end
else
    local user = redis.call('HGET', key, 'u')
    if (user and 'u' .. user or '') ~= ARGV[3] then return {'user'} end
end
if ARGV[4] ~= '' then redis.call('HSET', key, 's', ARGV[4]) end
renew()
return info()
"""
)
"""Format, id, user and time to live; the user and the time may be empty."""

INFO: Final = _COMMON + "return bad or info()"

APPEND: Final = (
    _COMMON
    + """
if bad then return bad end
if is_done(ARGV[1]) then return info() end
if has_lost(ARGV[2]) then return {'lost'} end
local version, length = unpack(redis.call('HMGET', key, 'n', 'l'))
if ARGV[3] ~= '' and ARGV[3] ~= version then return {'conflict', version} end
local added = 0
for at = 4, #ARGV, 2 do
    local name = ARGV[at]
    if name == '' or redis.call('HSETNX', key, name, '') == 1 then
        added = added + 1
        redis.call('HSET', key, 'e' .. number(length + added), ARGV[at + 1])
    end
end
if added > 0 then
    redis.call('HSET', key, 'n', number(version + added), 'l', number(length + added),
        't', seconds())
end
note(ARGV[1])
renew()
return info()
"""
)
"""Write, lease and expected version or nothing, then pairs of key field or nothing, and entry."""

READ: Final = (
    _COMMON
    + """
if bad then return bad end
local length, cuts = unpack(redis.call('HMGET', key, 'l', 'd'))
local found = {'ok', length, cuts}
local last = math.min(tonumber(length), tonumber(ARGV[2]))
local size, at = 0, tonumber(ARGV[1]) + 1
while at <= last and size < tonumber(ARGV[3]) do
    local names = {}
    for place = at, math.min(last, at + 63) do names[#names + 1] = 'e' .. number(place) end
    for _, entry in ipairs(redis.call('HMGET', key, unpack(names))) do
        if not entry then return {'corrupt', number(at)} end
        size = size + #entry
        found[#found + 1] = entry
        at = at + 1
    end
end
return found
"""
)
"""Behind, up to, and bytes after which it stops: length, cuts, entries."""

TRUNCATE: Final = (
    _COMMON
    + """
if bad then return bad end
if is_done(ARGV[1]) then return info() end
if has_lost(ARGV[2]) then return {'lost'} end
local version, length = unpack(redis.call('HMGET', key, 'n', 'l'))
if ARGV[3] ~= '' and ARGV[3] ~= version then return {'conflict', version} end
local kept = tonumber(ARGV[4])
if kept < tonumber(length) then
    for at = tonumber(length), kept + 1, -1 do
        local name = 'e' .. number(at)
        local entry = redis.call('HGET', key, name)
        if entry then
            local size = struct.unpack('>I4', entry, 3)
            if size > 0 then redis.call('HDEL', key, 'k' .. string.sub(entry, 7, 5 + size)) end
        end
        redis.call('HDEL', key, name)
    end
    redis.call('HINCRBY', key, 'd', 1)
    redis.call('HSET', key, 'n', number(version + 1), 'l', number(kept), 't', seconds())
end
note(ARGV[1])
renew()
return info()
"""
)
"""Write, lease and expected version or nothing, length."""

GET: Final = _COMMON + "return bad or {'ok', unpack(redis.call('HMGET', key, unpack(ARGV)))}"
"""Fields of the session."""

PUT_VALUE: Final = (
    _COMMON
    + """
if bad then return bad end
local name = ARGV[3]
local stamp = redis.call('HGET', key, 'V' .. name)
local version, writer = 0, ''
if stamp then version, writer = tonumber(string.sub(stamp, 9)), string.sub(stamp, 1, 8) end
if writer == ARGV[1] then return {'ok', number(version)} end
if has_lost(ARGV[2]) then return {'lost'} end
if is_done(ARGV[1]) or (ARGV[4] ~= '' and tonumber(ARGV[4]) ~= version) then
    return {'conflict', number(version)}
end
redis.call('HSET', key, 'v' .. name, ARGV[5], 'V' .. name, ARGV[1] .. number(version + 1))
note(ARGV[1])
renew()
return {'ok', number(version + 1)}
"""
)
"""Write, lease or nothing, name, expected version or nothing, payload."""

PUT_PAGES: Final = (
    _COMMON
    + """
if bad then return bad end
for at = 1, #ARGV, 2 do redis.call('HSETNX', key, 'P' .. ARGV[at], ARGV[at + 1]) end
renew()
return {'ok'}
"""
)
"""Pairs of pointer and page."""

NAMES: Final = (
    _COMMON
    + """
if bad then return bad end
local found = {'ok'}
for _, name in ipairs(redis.call('HKEYS', key)) do
    if string.sub(name, 1, 1) == ARGV[1] then found[#found + 1] = name end
end
return found
"""
)
"""Fields that begin with a letter."""

BRANCH: Final = (
    _COMMON
    + """
local staged = KEYS[2]
if bad and bad[1] ~= 'none' then return bad end
if not bad then
    if is_done(ARGV[1]) then return info() end
    return {'exists'}
end
local now = seconds()
redis.call('HSET', staged, 'f', ARGV[2], 'i', ARGV[3], 'p', ARGV[4], 'n', ARGV[5], 'l', ARGV[5],
    'd', 0, 'c', now, 't', now, 'w', ARGV[1])
if ARGV[6] ~= '' then redis.call('HSET', staged, 'u', string.sub(ARGV[6], 2)) end
if ARGV[7] ~= '' then redis.call('HSET', staged, 's', ARGV[7]) end
redis.call('RENAME', staged, key)
redis.call('PERSIST', key)
renew()
return info()
"""
)
"""Write, format, id, parent, length, user and time to live: what was staged becomes a session."""

STAGE: Final = """
for at = 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
redis.call('PEXPIRE', KEYS[1], 600000)
return 1
"""
"""Pairs of field and content, kept aside for a while."""

DELETE: Final = (
    _COMMON
    + """
return {redis.call('UNLINK', key) == 1 and 'ok' or 'none'}
"""
)

LEASE: Final = (
    _COMMON
    + """
if bad then return bad end
local holder, ends = unpack(redis.call('HMGET', key, 'h', 'y'))
local now = micros()
if holder and holder ~= ARGV[1] and tonumber(ends) > now then return {'ok', 0} end
local token = number(math.max(now, tonumber(redis.call('GET', KEYS[2]) or 0) + 1))
redis.call('HSET', key, 'h', ARGV[1], 'z', token, 'y', number(now + tonumber(ARGV[2]) * 1000000))
redis.call('SET', KEYS[2], token, 'PX', 86400000)
return {'ok', token}
"""
)
"""Holder and seconds: the token, 0 while another holds it.

A second key keeps the newest token for a day, so that tokens grow over the lives of the session,
even if the clock is set back.
"""

RENEW: Final = (
    _COMMON
    + """
if bad then return bad end
if has_lost(ARGV[1]) then return {'ok', 0} end
redis.call('HSET', key, 'y', number(micros() + tonumber(ARGV[2]) * 1000000))
return {'ok', 1}
"""
)
"""Token and seconds: whether it is still the session's, whose end was put off then."""

RELEASE: Final = (
    _COMMON
    + """
if bad then return bad end
if redis.call('HGET', key, 'z') == ARGV[1] then redis.call('HDEL', key, 'h', 'y', 'z') end
return {'ok'}
"""
)
"""Token."""

ADMIT: Final = """
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000000 + tonumber(t[2])
local check = now + 86400000000
if ARGV[2] ~= '' then check = math.floor(tonumber(ARGV[2]) * 1000000) + tonumber(t[2]) % 1000 end
redis.call('ZADD', KEYS[1], 0, ARGV[1])
redis.call('ZADD', KEYS[2], string.format('%.0f', check), ARGV[1])
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now),
        'LIMIT', 0, 8)) do
    found[#found + 1] = id
    found[#found + 1] = redis.call('ZSCORE', KEYS[2], id)
end
return found
"""
"""Session and its end or nothing: an index has it, and names a few whose check is due.

The score of the check is another one each time a session is opened: by it `FORGET` sees that
somebody opened the session after it was found missing.
"""

LIST: Final = """
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2])) do
    found[#found + 1] = id
    found[#found + 1] = redis.call('ZSCORE', KEYS[2], id) or ''
end
return found
"""

FORGET: Final = """
for at = 1, #ARGV, 2 do
    if (redis.call('ZSCORE', KEYS[2], ARGV[at]) or '') == ARGV[at + 1] then
        redis.call('ZREM', KEYS[1], ARGV[at])
        redis.call('ZREM', KEYS[2], ARGV[at])
    end
end
return 1
"""
"""Pairs of session and the score that it had before it was found missing."""

DELAY: Final = """
local t = redis.call('TIME')
if (redis.call('ZSCORE', KEYS[2], ARGV[1]) or '') ~= ARGV[2] then return 0 end
local check = tonumber(t[1]) * 1000000 + tonumber(t[2]) + 86400000000
if ARGV[3] ~= '' then check = math.floor(tonumber(ARGV[3]) * 1000000) end
redis.call('ZADD', KEYS[2], string.format('%.0f', check), ARGV[1])
return 1
"""
"""Session, the score that it had, its end or nothing: its check is put off."""
