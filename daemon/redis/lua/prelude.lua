-- One call of this script carries all entries of a pass: marker, clock and fence are read once.
-- KEYS: 1 marker "redlockd:<prefix>!meta", 2 fence, 3 there if anybody may wait for any name (see queue.lua), then the lock key "<prefix><name>" of each entry
-- ARGV: 1 expected marker, 2 ahead_us, then the entries. Each has the arguments that it needs, and its operation in front of them:
--       g value, proposal             an acquire of one token without a ticket
--       a value, proposal, range, px_ms, not_after_ms, ticket ('' = does not wait), ticket_ms, reserve_ms      any acquire
--       s the same                    an acquire of a share
--       k value, floor                a renewal
--       K value, floor                the same, and a missing key is set again
--       e value, new value, px_ms, floor, beyond, not_after_ms, how                                            any renewal, see extend.lua
--       n the same, ticket, ticket_ms                                                                          a renewal as a share, see sharing.lua
--       u the same, ticket, ticket_ms                                                                          a share is to be held alone
--       r value                       a release
--       R value                       the same, also of a share, see release.lua
--       x ticket                      a ticket leaves the queue
--       l                             a look
--       b what                        a lock is broken, see break.lua
--       t px_ms, not_after_ms (0 = none), reserve_ms     no entry, and it has no key: the terms of all g, k and K that follow
-- reply: {server_us, row, row, …}, a row per entry in order; see each operation. A number is the row of an entry that got what it asked for.
-- Only the redis.call below may raise an error, before anything is written. All other commands go through pcall.
local KEYS, ARGV, tonumber, call = KEYS, ARGV, tonumber, redis.pcall -- used often: locals are faster
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now_ms = math.floor(now_us / 1000)
local marker = string.sub(redis.call('GET', KEYS[1]) or '', 1, 256)
local joined = marker == ARGV[1]
local limit_us = now_us + tonumber(ARGV[2]) -- no fence may exceed this: skew and tolerance of daemon/core/member/quorum.h
local fence = tonumber(redis.call('GET', KEYS[2]) or '0')
-- Beyond 2^53 a number is not exact, and a fence would not grow. No clock comes near it: another program wrote it.
if not (fence and fence >= 0 and fence <= 9007190000000000) then return redis.error_reply('ERR the fence key holds no number that a fence may follow') end

local rows = {now_us}       -- what is answered
local k, a = 4, 3           -- of the entry at hand: its key, and its operation
local px, late, reserve_ms  -- the terms; late: not_after_ms is over
local written = fence       -- what the fence key holds, the fence or more
local anybody               -- without anybody who waits a free lock is nobody's turn, and one that becomes free wakes nobody
