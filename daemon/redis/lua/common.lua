-- The common case: free locks that nobody waits for, and renewals and releases of keys that have our value. This loop creates no function, because that costs
-- as much as a command. It ends in front of the first entry that is not so simple: that one and all behind it take the long way, which looks at them anew.
-- row: g base | k, K fence | r, R 1 (released) or 0 (no key of that value)
while ARGV[a] do
  local op, key, value = ARGV[a], KEYS[k], ARGV[a + 1]
  if op == 'g' or op == 'r' or op == 'R' then
    if anybody == nil then anybody = call('EXISTS', KEYS[3]) ~= 0 end
    if anybody and call('EXISTS', string.sub(KEYS[1], 1, -6) .. 'q:' .. string.sub(key, #KEYS[1] - 13)) ~= 0 then break end
  end
  if op == 'g' then
    if not joined or late then break end
    -- Raises the fence key before a token is granted: an error in between leaves a gap in the tokens, never a key without its token. The first acquire
    -- raises it for all that follow, as if all of them were granted, and their rows already tell the tokens.
    if not rows[k - 2] then
      local top, row, i = fence, k - 2, a
      while ARGV[i] do
        local what = ARGV[i]
        if what == 'g' or what == 'a' then
          local base, proposal, range = top + 1, tonumber(ARGV[i + 2]), what == 'a' and tonumber(ARGV[i + 3]) or 0
          if proposal > base and proposal <= limit_us then base = proposal end
          if range == 0 or base + range <= limit_us then top = base + range end
          rows[row] = base
        end
        if what ~= 't' then row = row + 1 end
        i = i + ((what == 'r' or what == 'R' or what == 'x' or what == 'b') and 2 or (what == 'a' or what == 's') and 9 or what == 'e' and 8
          or what == 't' and 4 or what == 'l' and 1 or what == 'n' and 10 or 3)
      end
      if call('SET', KEYS[2], string.format('%.0f', top)).err then break end
      written = top
    end
    local done = call('SET', key, value, 'PX', px, 'NX')
    if not done or done.err then break end
    fence = rows[k - 2]
    k, a = k + 1, a + 3
  elseif op == 'r' or op == 'R' then
    local current = call('GET', key)
    if current == value then
      if call('DEL', key) ~= 1 then break end
      rows[k - 2] = 1
    elseif op == 'R' or current and (type(current) == 'table' or current == '!' .. value) then
      break
    else
      rows[k - 2] = 0
    end
    k, a = k + 1, a + 2
  elseif op == 'k' or op == 'K' then
    -- GT: the TTL never shrinks. A server before Redis 7.0 refuses that, and takes the long way.
    if not joined or tonumber(ARGV[a + 2]) > fence or call('GET', key) ~= value or call('PEXPIRE', key, px, 'GT') ~= 1 then break end
    rows[k - 2] = fence
    k, a = k + 1, a + 3
  elseif op == 't' then
    local not_after = tonumber(ARGV[a + 2])
    px, late, reserve_ms = value, not_after > 0 and now_ms > not_after, ARGV[a + 3]
    a = a + 4
  else
    break
  end
end
if not ARGV[a] then return rows end
