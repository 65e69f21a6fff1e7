-- Runs the entries in order, and answers one row for each.
local rows = {now_us}
for i = 4, #KEYS, 2 do
  local a = 2 + (i - 4) / 2 * FIELDS
  local key, queue, ticket = KEYS[i], KEYS[i + 1], ARGV[a + 9]
  local op, value, px = ARGV[a + 1], ARGV[a + 2], ARGV[a + 4]
  if op == 'a' then
    rows[#rows + 1] = acquire(a, key, queue, value, tonumber(px), tonumber(ARGV[a + 5]), tonumber(ARGV[a + 6]), tonumber(ARGV[a + 7]),
      ticket, ARGV[a + 10], ARGV[a + 11])
  elseif op == 'e' then
    rows[#rows + 1] = extend(key, queue, value, ARGV[a + 3], tonumber(px), tonumber(ARGV[a + 5]), ARGV[a + 6], ARGV[a + 7],
      ARGV[a + 8], ticket)
  elseif op == 'x' then
    rows[#rows + 1] = withdraw(key, queue, ticket)
  elseif op == 'l' then
    rows[#rows + 1] = look(key)
  else
    rows[#rows + 1] = release(key, queue, value, ticket)
  end
end
if asked.a then acquire_settled() end
return rows
