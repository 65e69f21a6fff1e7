-- Who waits for whom: a hash, field = the id of a daemon, value = until when it counts, by the clock of the store, and the rows of that daemon about its owners
-- that have waited for long while they hold something (daemon/core/deadlock/wait_graph.h).
-- KEYS: 1 marker, 2 fence, 3 there if anybody may wait
-- ARGV: 1 expected marker, 2 id of the daemon, 3 for how long its rows count (ms), 4 its rows; '' = it has none any more
-- reply: {server_us, 'T', the id and the rows of each daemon, each with its length and ':' in front} | {server_us, 'Q', marker}
local ROWS_MAX = 65536 -- bytes of all rows
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local marker = string.sub(call('GET', KEYS[1]) or '', 1, 256)
if marker ~= ARGV[1] then return {now_us, 'Q', marker} end
local key, life_us = string.sub(KEYS[1], 1, -6) .. '!circles', tonumber(ARGV[3]) * 1000
if ARGV[4] == '' then
  call('HDEL', key, ARGV[2])
else
  call('HSET', key, ARGV[2], string.format('%.0f ', now_us + life_us) .. ARGV[4])
  call('PEXPIRE', key, ARGV[3])
end
local ids, rows, out = {}, {}, {}
local found = call('HGETALL', key)
for i = 1, #found, 2 do
  local till, from = string.match(found[i + 1], '^(%d+) ()')
  local left = tonumber(till or 0) - now_us
  if left <= 0 or left > life_us then -- it is over, or the clock was set back since
    call('HDEL', key, found[i])
  else
    ids[#ids + 1], rows[found[i]] = found[i], string.sub(found[i + 1], from)
  end
end
table.sort(ids) -- the order of a hash is any
for i = 1, #ids do
  local shown = string.sub(rows[ids[i]], 1, math.floor(ROWS_MAX / #ids)) -- no daemon takes the room of others
  out[i] = #ids[i] .. ':' .. ids[i] .. #shown .. ':' .. shown
end
return {now_us, 'T', table.concat(out)}
