-- The wait table: a sorted set, member = an owner that has waited for long while it holds something (daemon/core/waitentry.h), score = the number of the
-- exchange that left it there. Numbers grow, and are microseconds of the clock where it was not set back: so they also tell how old a member is.
-- The members of the daemon take the place of those that it left before.
-- KEYS: 1 marker, 2 fence, 3 there if anybody may wait
-- ARGV: 1 expected marker, 2 id of the daemon, 3 how long a member stays (ms), 4 members: each with its length and ':' in front
-- reply: {server_us, 'T', number, blank, the other members, likewise} | {server_us, 'Q', marker}
local TABLE_MAX = 196608 -- bytes of all members: a larger reply is refused
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local marker = string.sub(redis.call('GET', KEYS[1]) or '', 1, 256)
if marker ~= ARGV[1] then return {now_us, 'Q', marker} end
local function digits(n) return string.format('%.0f', n) end
local key, own, life_us = string.sub(KEYS[1], 1, -6) .. '!table', ARGV[2] .. ' ', tonumber(ARGV[3]) * 1000
redis.call('ZREMRANGEBYSCORE', key, '-inf', digits(now_us - life_us))
redis.call('ZREMRANGEBYSCORE', key, digits(now_us + life_us), '+inf') -- the clock was set back since
local number, others, size = now_us, {}, 0
local members = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
for i = 1, #members, 2 do
  local member, score = members[i], tonumber(members[i + 1])
  if score >= number then number = score + 1 end
  if string.sub(member, 1, #own) == own then
    redis.call('ZREM', key, member)
  else
    others[#others + 1] = #member .. ':' .. member
    size = size + #member + 8
  end
end
local at = 1
while at <= #ARGV[4] do
  local n, from = string.match(ARGV[4], '^(%d+):()', at)
  local member = string.sub(ARGV[4], from, from + n - 1)
  at, size = from + n, size + #member + 8
  if size <= TABLE_MAX then redis.call('ZADD', key, digits(number), member) end
end
redis.call('PEXPIRE', key, ARGV[3])
return {now_us, 'T', digits(number) .. ' ' .. table.concat(others)}
