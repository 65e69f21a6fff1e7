-- Compare-and-set of the membership marker. Joining ('j…') lifts the fence above every token that this server ever issued and has
-- forgotten: see daemon/core/quorum.h, why that is so. A fence key that holds no number is replaced as well.
-- One that comes late does nothing: what was seen may stand there again, in a store that has forgotten its locks since.
-- KEYS: 1 marker, 2 fence
-- ARGV: 1 marker that was seen ('' = absent), 2 new marker, 3 skew_us, 4 the largest fence that was seen anywhere, 0 = none, 5 not_after_ms, 0 = none
-- reply: {server_us, code, marker}   J done   X the marker was another   L too late
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local current = string.sub(redis.call('GET', KEYS[1]) or '', 1, 256)
if current ~= ARGV[1] then return {now_us, 'X', current} end
local not_after = tonumber(ARGV[5])
if not_after > 0 and math.floor(now_us / 1000) > not_after then return {now_us, 'L', current} end
if string.sub(ARGV[2], 1, 1) == 'j' then
  local fence = tonumber(redis.call('GET', KEYS[2]) or '0')
  local floor = math.max(now_us + tonumber(ARGV[3]), tonumber(ARGV[4]))
  if not (fence and fence >= floor and fence <= 9007199254740992) then redis.call('SET', KEYS[2], string.format('%.0f', floor)) end
end
redis.call('SET', KEYS[1], ARGV[2])
return {now_us, 'J', ARGV[2]}
