-- Runs the entries that are left, in order.
for i = 1, releases_n do
  if slow[i] then rows[1 + i] = release(KEYS[3 + i], queue_of(KEYS[3 + i]), ARGV[5 + i], false) end
end
for i = 1, acquires_n do
  local at = releases_n + i
  if slow[at] then
    local key, of, t = KEYS[3 + at], 8 + releases_n + 2 * i, terms[i]
    rows[1 + at] = acquire(key, queue_of(key), ARGV[of], tonumber(ARGV[of + 1]), t[1], t[2], is_late(t[3]), t[4], t[5], t[6])
  end
end
while ARGV[a] do
  local op, key, value = ARGV[a], KEYS[k], ARGV[a + 1]
  local queue = op ~= 't' and queue_of(key)
  local row
  if op == 't' then
    px, late = value, is_late(ARGV[a + 2])
  elseif op == 'a' or op == 's' then
    row = acquire(key, queue, value, tonumber(ARGV[a + 4]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), is_late(ARGV[a + 5]), ARGV[a + 6],
      ARGV[a + 7], ARGV[a + 8], op == 's')
  elseif op == 'k' or op == 'K' then
    row = extend(key, queue, value, value, tonumber(px), tonumber(ARGV[a + 2]), '0', late, op == 'K' and '1' or '0', 'x', '')
  elseif op == 'e' or op == 'n' then
    row = extend(key, queue, value, ARGV[a + 2], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]), ARGV[a + 5], is_late(ARGV[a + 6]), ARGV[a + 7],
      op == 'e' and 'x' or op, op == 'e' and '' or ARGV[a + 8], ARGV[a + 9])
  elseif op == 'x' then
    row = withdraw(key, queue, value)
  elseif op == 'l' then
    row = look(key, queue)
  elseif op == 'b' then
    row = take(key, queue, value)
  else
    row = release(key, queue, value, op == 'R')
  end
  if row then
    rows[k - 2] = row
    k = k + 1
  end
  a = a + WIDTH[op]
end
if written > fence then call('SET', KEYS[2], digits(fence)) end -- not all were granted
return rows
