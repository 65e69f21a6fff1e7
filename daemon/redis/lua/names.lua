-- Names that were locked, for COMPLETE; and those that a user locked last, for RECENT. Three sorted sets, beside the marker:
--   !names   each name, all with score 0: in the order of their bytes
--   !seen    the same names, score = a number that grows with each name that is noted: the oldest make room
--   u:USER   the names of a user, likewise
-- KEYS: 1 marker, 2 fence, 3 there if anybody may wait
-- ARGV: 1 expected marker, 2 how many names are kept, 3 how long they stay (ms), 4 what is asked:
--   c<limit> <prefix>  the first names that start so
--   u<user>            the names of the user, newest first
--   n and items, each with its length and ':' in front, oldest first: 'n'<name>, a name was locked; 'u'<length>:<user><name>, that user has locked it;
--                      'f'<length>:<user><name>, it is to be forgotten
-- reply: {server_us, 'T', names, each with its length and ':' in front; of n: how many were forgotten} | {server_us, 'Q', marker}
local REPLY_MAX = 131072 -- bytes of names
local OF_USER = 100      -- names
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local marker = string.sub(redis.call('GET', KEYS[1]) or '', 1, 256)
if marker ~= ARGV[1] then return {now_us, 'Q', marker} end
local base, asked = string.sub(KEYS[1], 1, -6), ARGV[4]
local names, seen = base .. '!names', base .. '!seen'
local function digits(n) return string.format('%.0f', n) end

local function listed(found)
  local out, size = {}, 0
  for i = 1, #found do
    size = size + #found[i] + 5
    if size > REPLY_MAX then break end
    out[i] = #found[i] .. ':' .. found[i]
  end
  return {now_us, 'T', table.concat(out)}
end

local op = string.sub(asked, 1, 1)
if op == 'c' then
  local limit, at = string.match(asked, '^c(%d+) ()')
  local prefix = string.sub(asked, at)
  local least, upto = string.match(prefix, '^(.-)\255*$'), '+'
  if least ~= '' then upto = '(' .. string.sub(least, 1, -2) .. string.char(string.byte(least, -1) + 1) end
  return listed(redis.call('ZRANGEBYLEX', names, '[' .. prefix, upto, 'LIMIT', 0, limit))
end
if op == 'u' then return listed(redis.call('ZREVRANGE', base .. 'u:' .. string.sub(asked, 2), 0, OF_USER - 1)) end

-- Numbers grow also where the clock was set back.
local number, noted = {}, {}
local function next_number(key)
  if not number[key] then
    noted[#noted + 1] = key
    local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    number[key] = last[2] and tonumber(last[2]) >= now_us and tonumber(last[2]) + 1 or now_us
  else
    number[key] = number[key] + 1
  end
  return digits(number[key])
end

-- One of the two may have been evicted or deleted.
if redis.call('ZCARD', names) ~= redis.call('ZCARD', seen) then redis.call('DEL', names, seen) end
local at, forgotten = 2, 0
while at <= #asked do
  local n, from = string.match(asked, '^(%d+):()', at)
  local kind, rest = string.sub(asked, from, from), string.sub(asked, from + 1, from + n - 1)
  at = from + n
  if kind == 'n' then
    redis.call('ZADD', names, 0, rest)
    redis.call('ZADD', seen, next_number(seen), rest)
  else
    local length, user_at = string.match(rest, '^(%d+):()')
    local key, name = base .. 'u:' .. string.sub(rest, user_at, user_at + length - 1), string.sub(rest, user_at + length)
    if kind == 'f' then
      forgotten = forgotten + redis.call('ZREM', key, name)
    else
      redis.call('ZADD', key, next_number(key), name)
    end
  end
end
for k = 1, #noted do
  local key = noted[k]
  local most = key == seen and tonumber(ARGV[2]) or OF_USER
  local over = redis.call('ZCARD', key) - most
  local old = over > 0 and redis.call('ZRANGE', key, 0, over - 1) or {}
  for i = 1, #old do
    redis.call('ZREM', key, old[i])
    if key == seen then redis.call('ZREM', names, old[i]) end
  end
  redis.call('PEXPIRE', key, ARGV[3])
end
if number[seen] then redis.call('PEXPIRE', names, ARGV[3]) end
return {now_us, 'T', digits(forgotten)}
