-- Publishes a message for another daemon: see daemon/core/lock/claim.h. Nothing is kept of it.
-- KEYS: 1 marker, 2 fence, 3 there if anybody may wait
-- ARGV: 1 expected marker, 2 id of that daemon, 3 the message
-- reply: {server_us, 'T', how many have got it; 0: that daemon does not listen here} | {server_us, 'Q', marker}
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local marker = string.sub(redis.call('GET', KEYS[1]) or '', 1, 256)
if marker ~= ARGV[1] then return {now_us, 'Q', marker} end
local heard = redis.pcall('PUBLISH', string.sub(KEYS[1], 1, -6) .. 'd:' .. ARGV[2], ARGV[3])
return {now_us, 'T', type(heard) == 'number' and string.format('%.0f', heard) or '0'}
