-- One call of this script carries all entries of a pass: marker, clock and fence are read once.
-- KEYS: 1 marker, 2 fence, 3 there if anybody may wait for any name (see queue.lua), then two per entry: the lock key, the key of its queue
-- ARGV: 1 expected marker, 2 ahead_us, then FIELDS per entry:
--       op (a acquire, e extend, r release, x withdraw, l look), value, new value, px_ms, fence, range (e: beyond), not_after_ms, how (e: see extend.lua),
--       ticket ('' = does not wait; e, r: prior values, separated by blanks), ticket_ms, reserve_ms
-- reply: {server_us, row, row, …}, a row per entry in order; see each operation
-- Only the redis.call below may raise an error, before anything is written. All other commands go through pcall.
local FIELDS = 11
local KEYS, ARGV, tonumber = KEYS, ARGV, tonumber -- used often: locals are faster
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now_ms = math.floor(now_us / 1000)
local marker = string.sub(redis.call('GET', KEYS[1]) or '', 1, 256)
local joined = marker == ARGV[1]
local limit_us = now_us + tonumber(ARGV[2]) -- no fence may exceed this: skew and tolerance of daemon/core/quorum.h
local fence = tonumber(redis.call('GET', KEYS[2]) or '0')
if not (fence and fence >= 0 and fence <= 9007199254740992) then return redis.error_reply('ERR the fence key holds no number') end

-- The operations of the entries. A function is created only if an entry needs it, because creating it costs as much as a command.
local asked, queued = {}, false -- the operations; whether an entry may use its queue
for a = 3, #ARGV, FIELDS do
  local op = ARGV[a]
  asked[op] = true
  queued = queued or not (op == 'l' or (op == 'e' and ARGV[a + 7] == '0'))
end
-- Without anybody who waits a free lock is nobody's turn, and one that becomes free wakes nobody.
local anybody = queued and redis.pcall('EXISTS', KEYS[3]) ~= 0

-- A number as a string: tostring would keep 14 digits only.
local function digits(n) return string.format('%.0f', n) end

-- The part of a value that others may see: "<daemon-id>:<number>"; '' for a value that no redlockd wrote.
local function public(value) return #value <= 128 and string.match(value, '^([^:]+:[^:]+):%x+$') or '' end

-- The error of a command (out of memory, read-only, no permission), or false. It must not affect the other entries of the batch.
local function refused(reply) return type(reply) == 'table' and reply.err end

-- An error of GET other than WRONGTYPE tells nothing about the key.
local function unreadable(current)
  local err = refused(current)
  return err and not string.find(err, 'WRONGTYPE', 1, true) and err
end

-- The row for a key that is not ours. current is a table (the WRONGTYPE error) if the key is of another type.
local function occupied(key, current)
  local pttl = redis.pcall('PTTL', key)
  local err = unreadable(current) or refused(pttl)
  if err then return {'!', err} end
  if type(current) == 'table' then return {'K', fence, pttl, ''} end
  return {'B', fence, pttl, public(current)}
end
