"""Scripts that run on the Redis server. Each script is one atomic step.

The scripts of charges are in ``charge_scripts.py``.

The name of an incarnation consists of the server's replication ID, which changes with every restart and failover, and
the start time of the incarnation. The data contain this name, so data from another server, or from before a restart,
have a different name. Every new connection compares the names, so that a new incarnation begins before any step sees
such data.

A slot remembers its last numbered step and the response to it. A step is executed at most once, even if it is sent
repeatedly, and never after it was canceled.

Numbers arrive as text; -1 means "no limit". ``charge`` is :func:`app.counters.metering.charge_of_site`; the tests
compare all stores with one model.
"""

from __future__ import annotations

import hashlib


class Script:
    """A script, and its variant that is executed only once under a name, if it has one."""

    def __init__(self, text: str, *, once: str | None = None) -> None:
        self.text = text
        # Redis identifies a script by its SHA-1.
        self.sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        self.once = None if once is None else Script(once)


COMMON = """
local function charge(gateway, trusted, capped)
  local certain = math.max(gateway, trusted)
  return certain + math.min(10, math.max(0, trusted + capped - certain))
end

local function site_of(key, site)
  local found = redis.call('HMGET', key, site .. ':gateway', site .. ':trusted', site .. ':capped')
  return tonumber(found[1] or 0), tonumber(found[2] or 0), tonumber(found[3] or 0)
end

local function count_gateway(key, site, searches, kept_ms)
  local gateway, trusted, capped = site_of(key, site)
  local after = math.max(0, gateway + searches)
  redis.call('HSET', key, site .. ':gateway', after)
  redis.call('PEXPIRE', key, kept_ms)
  return charge(after, trusted, capped) - charge(gateway, trusted, capped)
end

local function epoch_of(key, now_ms)
  local found = redis.call('HMGET', key, 'started', 'finished')
  if not found[1] then
    redis.call('HSET', key, 'started', now_ms, 'finished', now_ms)
    return tonumber(now_ms), tonumber(now_ms)
  end
  return tonumber(found[1]), tonumber(found[2])
end

local function incarnation_of(key, doubted)
  -- Without a doubt, what the data say is believed; '' doubts only whose data they are, '*…' any incarnation.
  local found = redis.call('HMGET', key, 'id', 'changes')
  local id = found[1]
  if id and not doubted then
    return id, tonumber(found[2])
  end
  local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
  if id and id ~= doubted and string.sub(doubted, 1, 1) ~= '*' and string.sub(id, 1, #history) == history then
    return id, tonumber(found[2])
  end
  local time = redis.call('TIME')
  id = history .. '-' .. time[1] .. string.format('%06d', time[2])
  redis.call('HSET', key, 'id', id, 'changes', 0)
  return id, 0
end

local function is_over(slot, number)
  local last = number ~= '' and redis.call('GET', slot)
  return last and tonumber(string.match(last, '^%d+')) >= tonumber(number)
end

local function remember(slot, number, response, kept_ms)
  if number ~= '' then
    redis.call('SET', slot, number .. ' ' .. response, 'PX', kept_ms)
  end
end

local function raise(day, under, id, used, indexing, kept_ms)
  if used == '' or under ~= id then
    return
  end
  local found = redis.call('HMGET', day, 'used', 'indexing')
  redis.call('HSET', day, 'used', math.max(tonumber(found[1] or 0), tonumber(used)),
    'indexing', math.max(tonumber(found[2] or 0), tonumber(indexing)))
  redis.call('PEXPIRE', day, kept_ms)
end

local function window_of(key, now, length, fresh_end)
  local found = redis.call('HMGET', key, 'hits', 'reset')
  if found[1] then
    local reset = tonumber(found[2])
    if now < reset and reset <= now + 2 * length then
      return tonumber(found[1]), reset, false
    end
  end
  return 0, fresh_end, true
end
"""
REPORT = Script(
    COMMON
    + """
-- KEYS: day, sites, reports, ends of reports, incarnation, slot
-- ARGV: now, operation, count, capped (1 or 0), site, how long days are kept, idempotency key or '', fingerprint,
--       how long keys are kept, number of the step or '', how long slots are kept,
--       the incarnation under which the day was raised, or is now: to these searches and indexing operations, or ''
-- returns: 0 recorded, 1 duplicate, 2 conflict, 3 the day is to be raised first; used; incarnation
local day, sites, reports, ends = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, count = tonumber(ARGV[1]), tonumber(ARGV[3])
if is_over(KEYS[6], ARGV[10]) then
  return
end
local id = incarnation_of(KEYS[5])
if ARGV[12] ~= id then
  return {3, 0, id}
end
raise(day, ARGV[12], id, ARGV[13], ARGV[14], ARGV[6])
local used = tonumber(redis.call('HGET', day, 'used') or 0)
if ARGV[7] ~= '' then
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 10)) do
    redis.call('HDEL', reports, old)
    redis.call('ZREM', ends, old)
  end
  local known = redis.call('HGET', reports, ARGV[7])
  if known and tonumber(redis.call('ZSCORE', ends, ARGV[7])) > now then
    return {known == ARGV[8] and 1 or 2, used, id}
  end
  redis.call('HSET', reports, ARGV[7], ARGV[8])
  redis.call('ZADD', ends, now + tonumber(ARGV[9]), ARGV[7])
  redis.call('PEXPIRE', reports, tonumber(ARGV[9]) + 60000)
  redis.call('PEXPIRE', ends, tonumber(ARGV[9]) + 60000)
end
if ARGV[2] == 'indexing' then
  redis.call('HINCRBY', day, 'indexing', count)
else
  local gateway, trusted, capped = site_of(sites, ARGV[5])
  local before = charge(gateway, trusted, capped)
  if ARGV[4] == '1' then
    capped = math.max(0, capped + count)
    redis.call('HSET', sites, ARGV[5] .. ':capped', capped)
  else
    trusted = math.max(0, trusted + count)
    redis.call('HSET', sites, ARGV[5] .. ':trusted', trusted)
  end
  redis.call('PEXPIRE', sites, ARGV[6])
  used = redis.call('HINCRBY', day, 'used', charge(gateway, trusted, capped) - before)
end
redis.call('PEXPIRE', day, ARGV[6])
remember(KEYS[6], ARGV[10], '', ARGV[11])
return {0, used, id}
"""
)

CALL_OFF = Script(
    """
-- KEYS: slot     ARGV: number of the step, how long slots are kept
-- returns: the response of the step if it was done; a done step has a blank behind its number, a canceled one none
local last, done, response = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)( ?)(.*)$')
if last == ARGV[1] then
  return done ~= '' and response
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false
"""
)

GREET = Script(
    COMMON
    + """
-- KEYS: incarnation
incarnation_of(KEYS[1], '')
"""
)

CHECK = Script(
    COMMON
    + """
-- KEYS: incarnation, something to write     ARGV: an incarnation that is doubted     returns: incarnation, changes
redis.call('SET', KEYS[2], 1, 'PX', 1000)
return {incarnation_of(KEYS[1], ARGV[1])}
"""
)

REFUSED = Script(
    """
-- KEYS: day     ARGV: how long days are kept
redis.call('HINCRBY', KEYS[1], 'refused', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
"""
)

DAYS = Script(
    """
-- KEYS: days     returns: used, indexing and refused of every day
local response = {}
for i = 1, #KEYS do
  for j, count in ipairs(redis.call('HMGET', KEYS[i], 'used', 'indexing', 'refused')) do
    response[3 * (i - 1) + j] = tonumber(count or 0)
  end
end
return response
"""
)

CHANGE = Script(
    COMMON
    + """
-- KEYS: epoch, open changes, incarnation     ARGV: now, 'begin', 'end' or 'forget', account
-- returns: started, finished, incarnation, changes
local id = incarnation_of(KEYS[3])
local started, finished = epoch_of(KEYS[1], ARGV[1])
if ARGV[2] == 'begin' then
  started = started + 1
  redis.call('ZADD', KEYS[2], ARGV[1], ARGV[3])
elseif ARGV[2] == 'end' then
  finished = finished + 1
  started = math.max(started, finished)
else
  started = started + 1
  finished = started
end
if started == finished then
  redis.call('ZREM', KEYS[2], ARGV[3])
end
redis.call('HSET', KEYS[1], 'started', string.format('%.0f', started), 'finished', string.format('%.0f', finished))
return {started, finished, id, redis.call('HINCRBY', KEYS[3], 'changes', 1)}
"""
)

HEAL = Script(
    """
-- KEYS: open changes     ARGV: begun before, prefix of versions     returns: accounts healed
local open = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[1])
for _, account in ipairs(open) do
  local epoch = ARGV[2] .. account
  redis.call('HSET', epoch, 'finished', redis.call('HGET', epoch, 'started'))
  redis.call('ZREM', KEYS[1], account)
end
return #open
"""
)

FORGET_SITE = Script(
    """
-- KEYS: sites of every day     ARGV: site
for i = 1, #KEYS do
  redis.call('HDEL', KEYS[i], ARGV[1] .. ':gateway', ARGV[1] .. ':trusted', ARGV[1] .. ':capped')
end
"""
)
