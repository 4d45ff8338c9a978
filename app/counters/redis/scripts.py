"""Scripts that run on the Redis server. Each script is one atomic step.

The name of an incarnation consists of the server's replication ID, which changes with every restart and failover, and
the start time of the incarnation. The data contain this name, so data from another server, or from before a restart,
have a different name. Every new connection compares the names, so that a new incarnation begins before any step sees
such data.

A slot remembers its last numbered step and the answer to it. A step is executed at most once, even if it is sent
repeatedly, and never after it was canceled.

Numbers arrive as text; -1 means "no limit". ``charge`` is :func:`app.counters.metering.charge_of_site`; the tests
compare all stores with one model.
"""

from __future__ import annotations

_COMMON = """
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

local function note(slot, number, answer, kept_ms)
  if number ~= '' then
    redis.call('SET', slot, number .. ' ' .. answer, 'PX', kept_ms)
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

HIT = (
    _COMMON
    + """
-- KEYS: windows..., day, sites, epoch, intent, incarnation, slot
-- ARGV: counting (1 or 0), now, reserving (1 or 0), reading usage (1 or 0), daily limit, gateway site or '',
--       reading version (1 or 0), how long days are kept, how many of the windows (the last ones) count once an intent
--       or -1 without an intent, its text, its longest pause, its longest time, its most requests, how long it is kept,
--       then of every window its limit, length, cost, and end if it begins now,
--       then the number of the step or '', how long slots are kept, an incarnation that is doubted,
--       the incarnation under which the day was raised, or is now: to these searches and indexing operations, or ''
-- returns: refused (2: the day is to be raised first), reserved, used or -1, started, finished, continues,
--          when the intent began, the day of the charge, then hits and reset of every window, then incarnation, changes
local now, kept_ms = tonumber(ARGV[2]), ARGV[8]
local last = #ARGV - 6
local number, slot_kept_ms, under = ARGV[last + 1], ARGV[last + 2], ARGV[last + 4]
local windows = #KEYS - 6
local day, sites, epoch, intent = KEYS[windows + 1], KEYS[windows + 2], KEYS[windows + 3], KEYS[windows + 4]
local answer = {0, 0, -1, 0, 0, 0, 0, math.floor(now / 86400000)}
local incarnation, slot = KEYS[windows + 5], KEYS[windows + 6]
if is_over(slot, number) then
  return {}
end
local id, changes = incarnation_of(incarnation, ARGV[last + 3] ~= '' and ARGV[last + 3])
for i = 9, 8 + 2 * windows do
  answer[i] = 0
end
answer[9 + 2 * windows], answer[10 + 2 * windows] = id, changes
if ARGV[3] == '1' and under ~= id then
  answer[1] = 2
  return answer
end
raise(day, under, id, ARGV[last + 5], ARGV[last + 6], kept_ms)
-- once
local began = {}
local counted = windows
local last_began = -1
if ARGV[7] == '1' then
  answer[4], answer[5] = epoch_of(epoch, ARGV[2])
end
if ARGV[9] ~= '-1' then
  last_began = tonumber(redis.call('GET', intent) or -1)
  local record = intent .. ':' .. string.format('%.0f', last_began)
  local found = redis.call('HMGET', record, 'text', 'last', 'requests', 'day')
  if found[1] and tonumber(found[3]) < tonumber(ARGV[13])
      and now <= tonumber(found[2]) + tonumber(ARGV[11]) and now <= last_began + tonumber(ARGV[12])
      and (string.sub(found[1], 1, #ARGV[10]) == ARGV[10] or string.sub(ARGV[10], 1, #found[1]) == found[1]) then
    answer[6], answer[7], answer[8] = 1, last_began, tonumber(found[4])
    counted = windows - tonumber(ARGV[9])
  end
end
for i = 1, windows do
  local limit, length, cost = tonumber(ARGV[11 + 4 * i]), tonumber(ARGV[12 + 4 * i]), tonumber(ARGV[13 + 4 * i])
  local hits, reset, begins = window_of(KEYS[i], now, length, tonumber(ARGV[14 + 4 * i]))
  if i <= counted and limit >= 0 and hits + cost > limit then
    answer[1] = 1
  end
  answer[7 + 2 * i], answer[8 + 2 * i], began[i] = hits, reset, begins
end
if ARGV[4] == '1' then
  answer[3] = tonumber(redis.call('HGET', day, 'used') or 0)
end
if ARGV[1] == '0' or answer[1] == 1 then
  return answer
end
for i = 1, counted do
  local hits = answer[7 + 2 * i] + tonumber(ARGV[13 + 4 * i])
  answer[7 + 2 * i] = hits
  if began[i] then
    redis.call('HSET', KEYS[i], 'hits', hits, 'reset', string.format('%.0f', answer[8 + 2 * i]))
    redis.call('PEXPIRE', KEYS[i], tonumber(ARGV[12 + 4 * i]) + 60000)
  else
    redis.call('HSET', KEYS[i], 'hits', hits)
  end
end
if answer[6] == 1 then
  local record = intent .. ':' .. string.format('%.0f', last_began)
  redis.call('HSET', record, 'text', ARGV[10], 'last', ARGV[2])
  redis.call('HINCRBY', record, 'requests', 1)
  redis.call('PEXPIRE', record, ARGV[14])
  redis.call('PEXPIRE', intent, ARGV[14])
  answer[2] = 1
elseif ARGV[3] == '1' then
  local limit = tonumber(ARGV[5])
  if limit < 0 or answer[3] < limit then
    local change = 1
    if ARGV[6] ~= '' then
      change = count_gateway(sites, ARGV[6], 1, kept_ms)
    end
    answer[2] = 1
    answer[3] = redis.call('HINCRBY', day, 'used', change)
    redis.call('PEXPIRE', day, kept_ms)
    if ARGV[9] ~= '-1' then
      answer[7] = math.max(now, last_began + 1)
      local number = string.format('%.0f', answer[7])
      local record = intent .. ':' .. number
      redis.call('SET', intent, number, 'PX', ARGV[14])
      redis.call('HSET', record, 'text', ARGV[10], 'last', ARGV[2], 'requests', 1, 'failed', 0, 'day', answer[8])
      redis.call('PEXPIRE', record, ARGV[14])
    end
  end
end
if answer[2] == 1 then
  note(slot, number, string.format('%.0f %.0f', answer[7], answer[8]), slot_kept_ms)
end
return answer
"""
)

GIVE_BACK = (
    _COMMON
    + """
-- KEYS: windows..., day, sites, the intent's record, slot
-- ARGV: now, reserved (1 or 0), gateway site or '', how long days are kept, of an intent (1 or 0),
--       then end and cost of every window, then the number of the step, and how long slots are kept
local windows = #KEYS - 4
local day, sites, record, slot = KEYS[windows + 1], KEYS[windows + 2], KEYS[windows + 3], KEYS[windows + 4]
local number, slot_kept_ms = ARGV[#ARGV - 1], ARGV[#ARGV]
if is_over(slot, number) then
  return
end
note(slot, number, '', slot_kept_ms)
-- once
for i = 1, windows do
  local reset, cost = ARGV[4 + 2 * i], tonumber(ARGV[5 + 2 * i])
  local found = redis.call('HMGET', KEYS[i], 'hits', 'reset')
  if found[2] == reset and tonumber(reset) > tonumber(ARGV[1]) then
    redis.call('HSET', KEYS[i], 'hits', math.max(0, tonumber(found[1]) - cost))
  end
end
if ARGV[2] == '1' then
  if ARGV[5] == '1' then
    local requests = tonumber(redis.call('HGET', record, 'requests') or 0)
    if requests == 0 or redis.call('HINCRBY', record, 'failed', 1) < requests then
      return
    end
    redis.call('DEL', record)
  end
  local change = -1
  if ARGV[3] ~= '' then
    change = count_gateway(sites, ARGV[3], -1, ARGV[4])
  end
  local used = redis.call('HGET', day, 'used')
  if used then
    redis.call('HSET', day, 'used', math.max(0, tonumber(used) + change))
  end
end
"""
)

_ONCE = """
-- Before another script, of which an argument is 0 the second time.
-- Further KEYS: reports, ends of reports     Further ARGV: name of the step, now, how long names are kept
local once_ends, once_reports = table.remove(KEYS), table.remove(KEYS)
local name_kept_ms, moment, name = tonumber(table.remove(ARGV)), tonumber(table.remove(ARGV)), table.remove(ARGV)
local function seen()
  if tonumber(redis.call('ZSCORE', once_ends, name) or 0) > moment then
    return true
  end
  redis.call('HSET', once_reports, name, '')
  redis.call('ZADD', once_ends, moment + name_kept_ms, name)
  redis.call('PEXPIRE', once_reports, name_kept_ms + 60000)
  redis.call('PEXPIRE', once_ends, name_kept_ms + 60000)
end
"""

HIT_ONCE = _ONCE + HIT.replace("-- once\n", "if seen() then ARGV[1] = '0' end\n")
GIVE_BACK_ONCE = _ONCE + GIVE_BACK.replace("-- once\n", "if seen() then ARGV[2] = '0' end\n")

REPORT = (
    _COMMON
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
note(KEYS[6], ARGV[10], '', ARGV[11])
return {0, used, id}
"""
)

CALL_OFF = """
-- KEYS: slot     ARGV: number of the step, how long slots are kept
-- returns: the answer of the step if it was done; what was done has a blank behind its number, what was called off none
local last, done, answer = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)( ?)(.*)$')
if last == ARGV[1] then
  return done ~= '' and answer
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false
"""

GREET = (
    _COMMON
    + """
-- KEYS: incarnation
incarnation_of(KEYS[1], '')
"""
)

CHECK = (
    _COMMON
    + """
-- KEYS: incarnation, something to write     ARGV: an incarnation that is doubted     returns: incarnation, changes
redis.call('SET', KEYS[2], 1, 'PX', 1000)
return {incarnation_of(KEYS[1], ARGV[1])}
"""
)

REFUSED = """
-- KEYS: day     ARGV: how long days are kept
redis.call('HINCRBY', KEYS[1], 'refused', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
"""

DAYS = """
-- KEYS: days     returns: used, indexing and refused of every day
local answer = {}
for i = 1, #KEYS do
  for j, count in ipairs(redis.call('HMGET', KEYS[i], 'used', 'indexing', 'refused')) do
    answer[3 * (i - 1) + j] = tonumber(count or 0)
  end
end
return answer
"""

CHANGE = (
    _COMMON
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

HEAL = """
-- KEYS: open changes     ARGV: begun before, prefix of versions     returns: accounts healed
local open = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[1])
for _, account in ipairs(open) do
  local epoch = ARGV[2] .. account
  redis.call('HSET', epoch, 'finished', redis.call('HGET', epoch, 'started'))
  redis.call('ZREM', KEYS[1], account)
end
return #open
"""

FORGET_SITE = """
-- KEYS: sites of every day     ARGV: site
for i = 1, #KEYS do
  redis.call('HDEL', KEYS[i], ARGV[1] .. ':gateway', ARGV[1] .. ':trusted', ARGV[1] .. ':capped')
end
"""
