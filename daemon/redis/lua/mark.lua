-- Compare-and-set of the membership marker. A new marker 'j…' (joined) also raises the fence above every token that this server issued and
-- forgot: daemon/core/member/members.h has the argument. A fence key that holds no number is replaced as well.
-- A late call does nothing: a store that has lost its locks since may show the expected marker again.
-- KEYS: 1 marker, 2 fence
-- ARGV: 1 expected marker ('' = absent), 2 new marker, 3 skew_us, 4 the largest fence that the daemon saw at any store, 0 = none, 5 not_after_ms, 0 = none
-- reply: {server_us, code, marker}   J done   X marker differs   L too late
-- What the server says of a SET that it refuses, and the name of the command.
local function refused(key, value)
  local done = redis.pcall('SET', key, value)
  return done.err and redis.error_reply(done.err .. ': SET')
end
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local current = string.sub(redis.call('GET', KEYS[1]) or '', 1, 256)
if current ~= ARGV[1] then return {now_us, 'X', current} end
local not_after = tonumber(ARGV[5])
if not_after > 0 and math.floor(now_us / 1000) > not_after then return {now_us, 'L', current} end
if string.sub(ARGV[2], 1, 1) == 'j' then
  local fence = tonumber(redis.call('GET', KEYS[2]) or '0')
  local floor = math.max(now_us + tonumber(ARGV[3]), tonumber(ARGV[4]))
  local low = not (fence and fence >= floor and fence <= 9007199254740992)
  local wrong = low and refused(KEYS[2], string.format('%.0f', floor))
  if wrong then return wrong end
end
return refused(KEYS[1], ARGV[2]) or {now_us, 'J', ARGV[2]}
