-- One call of this script carries all entries of a pass: marker, clock and fence are read once.
-- KEYS: 1 marker, 2 fence, then two per entry: the lock key, the key of its queue
-- ARGV: 1 marker that must stand there, 2 ahead_us, then FIELDS per entry:
--       op (a acquire, e extend, r release, x withdraw, l look), value, new value, px_ms, fence, range (e: beyond), not_after_ms, how (e: see extend.lua),
--       ticket ('' = does not wait; e, r: prior values, separated by blanks), ticket_ms, grace_ms
-- reply: {server_us, row, row, …}, a row per entry in order; see each operation
-- Only these first lines may raise an error of Redis, before anything was written: all that follows goes through pcall.
local FIELDS = 11
local KEYS, ARGV, tonumber = KEYS, ARGV, tonumber -- read often: a local needs no search
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now_ms = math.floor(now_us / 1000)
local marker = string.sub(redis.call('GET', KEYS[1]) or '', 1, 256)
local joined = marker == ARGV[1]
local limit_us = now_us + tonumber(ARGV[2]) -- no fence runs beyond: skew and tolerance of daemon/core/quorum.h
local fence = tonumber(redis.call('GET', KEYS[2]) or '0')
if not (fence and fence >= 0 and fence <= 9007199254740992) then return redis.error_reply('ERR the fence key holds no number') end

-- What the entries ask for. A function that none of them calls is not made: to make it costs as much as a command.
local asked, queued = {}, false -- the ops; whether an entry may touch its queue
for a = 3, #ARGV, FIELDS do
  local op = ARGV[a]
  asked[op] = true
  queued = queued or not (op == 'l' or (op == 'e' and ARGV[a + 7] == '0'))
end

-- Numbers become strings by %.0f: tostring keeps 14 digits only.
local function digits(n) return string.format('%.0f', n) end

-- The part of a value that others may see: "<daemon-id>:<ticket>"; '' for a value that no redlockd wrote.
local function public(value) return #value <= 128 and string.match(value, '^([^:]+:[^:]+):%x+$') or '' end

-- What was refused (out of memory, read-only, no permission) must leave the rest of the batch as it is.
local function refused(reply) return type(reply) == 'table' and reply.err end

-- An error of GET that says more than "of another type" says nothing about the key.
local function unreadable(current)
  local err = refused(current)
  return err and not string.find(err, 'WRONGTYPE', 1, true) and err
end

-- What stands at a key that is not ours: a table when it is of another type.
local function occupied(key, current)
  local pttl = redis.pcall('PTTL', key)
  local err = unreadable(current) or refused(pttl)
  if err then return {'!', err} end
  if type(current) == 'table' then return {'K', fence, pttl, ''} end
  return {'B', fence, pttl, public(current)}
end
