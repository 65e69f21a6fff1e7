-- All releases, and then all acquires, at once: one MGET has read what the releases find, one DEL frees it, one SET raises the fence for all, and one SET takes
-- each key that is free. What is not so simple takes the long way, alone: `slow` has the places of these entries.
-- notes: a line "offset range ticket" for each acquire, its proposal being the first one and the offset; and in front of the first, and where they change, a
-- line "t not_after_ms ticket_ms reserve_ms".
-- row: an acquire its base | a release 1 (released) or 0 (no key of that value)
local slow, slows, exact = {}, 0, true
if anybody and releases_n + acquires_n > 0 then
  local queues, base, from = {}, string.sub(KEYS[1], 1, -6), #KEYS[1] - 13
  for i = 1, releases_n + acquires_n do
    local key = KEYS[3 + i]
    queues[i] = base .. 'q' .. (string.sub(key, 1, 9) == 'redlockd:' and string.sub(key, from + 9) or ':' .. string.sub(key, from))
  end
  if call('EXISTS', unpack(queues)) ~= 0 then
    for i = 1, #queues do slow[i] = call('EXISTS', queues[i]) ~= 0 end
  end
end
if releases_n > 0 then
  local freed, n = {}, 0
  for i = 1, releases_n do
    local current = found[3 + i]
    if slow[i] then
      slows = slows + 1
    elseif current == ARGV[5 + i] then
      n = n + 1
      freed[n] = KEYS[3 + i]
    else
      exact = false
      if current then slow[i], slows = true, slows + 1 else rows[1 + i] = 0 end
    end
  end
  if n > 0 and type(call('DEL', unpack(freed))) == 'table' then
    slows = releases_n
    for i = 1, releases_n do slow[i] = true end
  end
end
local first, notes
if acquires_n > 0 then
  local not_after, last, given = tonumber(ARGV[a]), tonumber(ARGV[a + 2]), false
  first, notes, a = tonumber(ARGV[a + 1]), ARGV[a + 3], a + 4
  local able = joined and (not_after == 0 or now_ms <= not_after) and first > fence and last <= limit_us and not call('SET', KEYS[2], ARGV[a - 2]).err
  if able then written = last end
  for i = 1, acquires_n do
    local at = releases_n + i
    -- GET: a reply without a table. A server before Redis 7.0 refuses it with NX, and takes the long way.
    if able and not slow[at] and not call('SET', KEYS[3 + at], ARGV[a], 'PX', ARGV[a + 1], 'NX', 'GET') then
      given = true
    else
      slow[at], slows = true, slows + 1
    end
    a = a + 2
  end
  if given then fence = last end
  k = k + acquires_n
end
if exact and slows == 0 and not ARGV[a] then return rows end
local terms = {} -- of the acquires
if acquires_n > 0 then
  local i, not_after, ticket_ms, reserve_ms = 0
  for x, y, z in string.gmatch(notes, '(%S+) (%d+) ([^\n]*)\n') do
    if string.sub(x, 1, 1) == 't' then
      not_after, ticket_ms, reserve_ms = string.sub(x, 2), y, z
    else
      i = i + 1
      terms[i] = {first + x, tonumber(y), not_after, z, ticket_ms, reserve_ms}
      if not slow[releases_n + i] then rows[1 + releases_n + i] = first + x end
    end
  end
end
for i = 1, releases_n do
  if not slow[i] and not rows[1 + i] then rows[1 + i] = 1 end
end
