-- SPDX-License-Identifier: BSD-2-Clause
-- The guard of a fence in Redis: sets a key unless its lock has had a larger fence.
--
--     EVAL script 2 KEY GUARD VALUE FENCE [EX SECONDS …]     what follows FENCE goes to SET
--
-- GUARD is a key of its own for each lock, and must never expire or be evicted. The answer is OK, or the error STALE. A script of yours that does more begins
-- with the same three lines.

local largest = tonumber(redis.call('GET', KEYS[2]) or '0')
if tonumber(ARGV[2]) < largest then return redis.error_reply('STALE the lock has had the fence ' .. string.format('%.0f', largest)) end
redis.call('SET', KEYS[2], ARGV[2])

return redis.call('SET', KEYS[1], ARGV[1], unpack(ARGV, 3))
