-- One call of this script carries all entries of a pass: marker, clock and fence are read once.
-- KEYS: 1 marker "redlockd:<prefix>!meta", 2 fence, 3 there if anybody may wait for any name (see queue.lua), then the lock key "<prefix><name>" of each entry:
--       first of the releases, then of the acquires, then of all others
-- ARGV: 1 expected marker, 2 ahead_us, 3 a fence that was seen here, 4 the number of releases, 5 of acquires; the value of each release; and if there are acquires: not_after_ms (0 = none; the
--       first of all), the first proposal, the last one with its range; they grow, notes (see free.lua); value and px_ms of each.
--       Then the other entries. Each has the arguments that it needs, and its operation in front of them:
--       a value, proposal, range, px_ms, not_after_ms, ticket ('' = does not wait), ticket_ms, reserve_ms      an acquire
--       s the same                    an acquire of a share
--       k value, floor                a renewal
--       K value, floor                the same, and a missing key is set again
--       e value, new value, px_ms, floor, beyond, not_after_ms, how                                            any renewal, see extend.lua
--       n the same, ticket, ticket_ms                                                                          a renewal as a share, see sharing.lua
--       r value                       a release
--       R value                       the same, also of a share, see release.lua
--       x ticket                      a ticket leaves the queue
--       l                             a look
--       b what                        a lock is broken, see break.lua
--       t px_ms, not_after_ms (0 = none)                no entry, and it has no key: the terms of all k and K that follow
-- reply: {server_us, row, row, …}, a row per entry in the order of the keys; see each operation. A number is the row of an entry that got what it asked for.
--        {server_us} alone: there are releases and acquires only, and each got what it asked for.
-- Only the redis.call below may raise an error, before anything is written. All other commands go through pcall.
local KEYS, ARGV, tonumber, call = KEYS, ARGV, tonumber, redis.pcall -- used often: locals are faster
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now_ms = math.floor(now_us / 1000)
local releases_n, acquires_n = tonumber(ARGV[4]), tonumber(ARGV[5])
local found = redis.call('MGET', unpack(KEYS, 1, 3 + releases_n))
local marker = string.sub(found[1] or redis.call('GET', KEYS[1]) or '', 1, 256) -- MGET says nothing of a key of another type
local joined = marker == ARGV[1]
local limit_us = now_us + tonumber(ARGV[2]) -- no fence may exceed this: skew and tolerance of daemon/core/member/members.h
local fence = tonumber(found[2] or redis.call('GET', KEYS[2]) or '0')
-- Beyond 2^53 a number is not exact, and a fence would not grow. No clock comes near it: another program wrote it.
if not (fence and fence >= 0 and fence <= 9007190000000000) then return redis.error_reply('ERR the fence key holds no number that a fence may follow') end

-- It has fallen: this server has got older data, and others may hold what seems free. The row Q says that by naming no marker.
if joined and fence < tonumber(ARGV[3]) then joined, marker = false, '' end

local rows = {now_us}            -- what is answered
local k, a = 4 + releases_n, 6 + releases_n -- of the entry at hand: its key, and its first argument
local px, late                   -- the terms; late: not_after_ms is over
local written = fence            -- what the fence key holds, the fence or more
local anybody = found[3] ~= false -- without anybody who waits a free lock is nobody's turn, and one that becomes free wakes nobody
