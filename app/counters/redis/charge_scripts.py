"""Scripts that count requests, charge searches, and undo both. ``scripts.py`` defines the functions that they call."""

from __future__ import annotations

from app.counters.redis.scripts import COMMON, Script

_HIT = (
    COMMON
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
local response = {0, 0, -1, 0, 0, 0, 0, math.floor(now / 86400000)}
local incarnation, slot = KEYS[windows + 5], KEYS[windows + 6]
if is_over(slot, number) then
  return {}
end
local id, changes = incarnation_of(incarnation, ARGV[last + 3] ~= '' and ARGV[last + 3])
for i = 9, 8 + 2 * windows do
  response[i] = 0
end
response[9 + 2 * windows], response[10 + 2 * windows] = id, changes
if ARGV[3] == '1' and under ~= id then
  response[1] = 2
  return response
end
raise(day, under, id, ARGV[last + 5], ARGV[last + 6], kept_ms)
-- once
local began = {}
local counted = windows
local last_began = -1
if ARGV[7] == '1' then
  response[4], response[5] = epoch_of(epoch, ARGV[2])
end
if ARGV[9] ~= '-1' then
  last_began = tonumber(redis.call('GET', intent) or -1)
  local record = intent .. ':' .. string.format('%.0f', last_began)
  local found = redis.call('HMGET', record, 'text', 'last', 'requests', 'day')
  if found[1] and tonumber(found[3]) < tonumber(ARGV[13])
      and now <= tonumber(found[2]) + tonumber(ARGV[11]) and now <= last_began + tonumber(ARGV[12])
      and (string.sub(found[1], 1, #ARGV[10]) == ARGV[10] or string.sub(ARGV[10], 1, #found[1]) == found[1]) then
    response[6], response[7], response[8] = 1, last_began, tonumber(found[4])
    counted = windows - tonumber(ARGV[9])
  end
end
for i = 1, windows do
  local limit, length, cost = tonumber(ARGV[11 + 4 * i]), tonumber(ARGV[12 + 4 * i]), tonumber(ARGV[13 + 4 * i])
  local hits, reset, begins = window_of(KEYS[i], now, length, tonumber(ARGV[14 + 4 * i]))
  if i <= counted and limit >= 0 and hits + cost > limit then
    response[1] = 1
  end
  response[7 + 2 * i], response[8 + 2 * i], began[i] = hits, reset, begins
end
if ARGV[4] == '1' then
  response[3] = tonumber(redis.call('HGET', day, 'used') or 0)
end
if ARGV[1] == '0' or response[1] == 1 then
  return response
end
for i = 1, counted do
  local hits = response[7 + 2 * i] + tonumber(ARGV[13 + 4 * i])
  response[7 + 2 * i] = hits
  if began[i] then
    redis.call('HSET', KEYS[i], 'hits', hits, 'reset', string.format('%.0f', response[8 + 2 * i]))
    redis.call('PEXPIRE', KEYS[i], tonumber(ARGV[12 + 4 * i]) + 60000)
  else
    redis.call('HSET', KEYS[i], 'hits', hits)
  end
end
if response[6] == 1 then
  local record = intent .. ':' .. string.format('%.0f', last_began)
  redis.call('HSET', record, 'text', ARGV[10], 'last', ARGV[2])
  redis.call('HINCRBY', record, 'requests', 1)
  redis.call('PEXPIRE', record, ARGV[14])
  redis.call('PEXPIRE', intent, ARGV[14])
  response[2] = 1
elseif ARGV[3] == '1' then
  local limit = tonumber(ARGV[5])
  if limit < 0 or response[3] < limit then
    local change = 1
    if ARGV[6] ~= '' then
      change = count_gateway(sites, ARGV[6], 1, kept_ms)
    end
    response[2] = 1
    response[3] = redis.call('HINCRBY', day, 'used', change)
    redis.call('PEXPIRE', day, kept_ms)
    if ARGV[9] ~= '-1' then
      response[7] = math.max(now, last_began + 1)
      local number = string.format('%.0f', response[7])
      local record = intent .. ':' .. number
      redis.call('SET', intent, number, 'PX', ARGV[14])
      redis.call('HSET', record, 'text', ARGV[10], 'last', ARGV[2], 'requests', 1, 'failed', 0, 'day', response[8])
      redis.call('PEXPIRE', record, ARGV[14])
    end
  end
end
if response[2] == 1 then
  remember(slot, number, string.format('%.0f %.0f', response[7], response[8]), slot_kept_ms)
end
return response
"""
)

_GIVE_BACK = (
    COMMON
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
remember(slot, number, '', slot_kept_ms)
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

HIT = Script(_HIT, once=_ONCE + _HIT.replace("-- once\n", "if seen() then ARGV[1] = '0' end\n"))
GIVE_BACK = Script(_GIVE_BACK, once=_ONCE + _GIVE_BACK.replace("-- once\n", "if seen() then ARGV[2] = '0' end\n"))
