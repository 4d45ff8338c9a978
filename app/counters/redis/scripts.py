"""What the Redis store runs on the server: one script is one atomic step.

Numbers arrive as text and -1 means "no limit". ``charge`` is
:func:`app.counters.metering.charge_of_site`; the tests hold all stores against one model.
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

local function window_of(key, now, length)
  local found = redis.call('HMGET', key, 'hits', 'reset')
  if found[1] then
    local reset = tonumber(found[2])
    if now < reset and reset <= now + 2 * length then
      return tonumber(found[1]), reset, false
    end
  end
  return 0, now + length, true
end
"""

HIT = (
    _COMMON
    + """
-- KEYS: windows..., day, sites, epoch, intent
-- ARGV: counting (1 or 0), now, reserving (1 or 0), reading usage (1 or 0), daily limit, gateway site or '',
--       reading version (1 or 0), how long days are kept, how many of the windows (the last ones) count once an intent
--       or -1 without an intent, its text, its longest pause, its longest time, its most requests, how long it is kept,
--       then limit, length and cost of every window
-- returns: refused, reserved, used or -1, started, finished, continues, when the intent began, the day of the charge,
--          then hits and reset of every window
local now, kept_ms = tonumber(ARGV[2]), ARGV[8]
local windows = #KEYS - 4
local day, sites, epoch, intent = KEYS[windows + 1], KEYS[windows + 2], KEYS[windows + 3], KEYS[windows + 4]
local answer = {0, 0, -1, 0, 0, 0, 0, math.floor(now / 86400000)}
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
  local limit, length, cost = tonumber(ARGV[12 + 3 * i]), tonumber(ARGV[13 + 3 * i]), tonumber(ARGV[14 + 3 * i])
  local hits, reset, begins = window_of(KEYS[i], now, length)
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
  local hits = answer[7 + 2 * i] + tonumber(ARGV[14 + 3 * i])
  answer[7 + 2 * i] = hits
  if began[i] then
    redis.call('HSET', KEYS[i], 'hits', hits, 'reset', string.format('%.0f', answer[8 + 2 * i]))
    redis.call('PEXPIRE', KEYS[i], tonumber(ARGV[13 + 3 * i]) + 60000)
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
return answer
"""
)

GIVE_BACK = (
    _COMMON
    + """
-- KEYS: windows..., day, sites, the intent's record
-- ARGV: now, reserved (1 or 0), gateway site or '', how long days are kept, of an intent (1 or 0),
--       then end and cost of every window
local windows = #KEYS - 3
local day, sites, record = KEYS[windows + 1], KEYS[windows + 2], KEYS[windows + 3]
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

REPORT = (
    _COMMON
    + """
-- KEYS: day, sites, reports, ends of reports
-- ARGV: now, operation, count, capped (1 or 0), site, how long days are kept, idempotency key or '', fingerprint,
--       how long keys are kept
-- returns: 0 recorded, 1 duplicate, 2 conflict; used
local day, sites, reports, ends = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, count = tonumber(ARGV[1]), tonumber(ARGV[3])
local used = tonumber(redis.call('HGET', day, 'used') or 0)
if ARGV[7] ~= '' then
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 10)) do
    redis.call('HDEL', reports, old)
    redis.call('ZREM', ends, old)
  end
  local known = redis.call('HGET', reports, ARGV[7])
  if known and tonumber(redis.call('ZSCORE', ends, ARGV[7])) > now then
    return {known == ARGV[8] and 1 or 2, used}
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
    capped = capped + count
    redis.call('HSET', sites, ARGV[5] .. ':capped', capped)
  else
    trusted = trusted + count
    redis.call('HSET', sites, ARGV[5] .. ':trusted', trusted)
  end
  redis.call('PEXPIRE', sites, ARGV[6])
  used = redis.call('HINCRBY', day, 'used', charge(gateway, trusted, capped) - before)
end
redis.call('PEXPIRE', day, ARGV[6])
return {0, used}
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
-- KEYS: epoch, open changes     ARGV: now, 'begin', 'end' or 'forget', account     returns: started, finished
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
return {started, finished}
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
