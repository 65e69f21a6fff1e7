-- The common case of the rest: renewals, and releases of keys that have our value. This loop creates no function, because that costs as much as a command. It
-- ends in front of the first entry that is not so simple: that one and all behind it take the long way, which looks at them anew.
-- row: k, K fence | R 1 (released)
while slows == 0 and ARGV[a] do
  local op, key, value = ARGV[a], KEYS[k], ARGV[a + 1]
  if op == 'R' then
    local queue
    if anybody then -- see queue_of()
      local from = #KEYS[1] - 13
      queue = string.sub(KEYS[1], 1, -6) .. 'q' .. (string.sub(key, 1, 9) == 'redlockd:' and string.sub(key, from + 9) or ':' .. string.sub(key, from))
    end
    if queue and call('EXISTS', queue) ~= 0 or call('GET', key) ~= value or call('DEL', key) ~= 1 then break end
    rows[k - 2] = 1
    k, a = k + 1, a + 2
  elseif op == 'k' or op == 'K' then
    -- GT: the TTL never shrinks. A server before Redis 7.0 refuses that, and takes the long way.
    if not joined or tonumber(ARGV[a + 2]) > fence or call('GET', key) ~= value or call('PEXPIRE', key, px, 'GT') ~= 1 then break end
    rows[k - 2] = fence
    k, a = k + 1, a + 3
  elseif op == 't' then
    local not_after = tonumber(ARGV[a + 2])
    px, late = value, not_after > 0 and now_ms > not_after
    a = a + 3
  else
    break
  end
end
if slows == 0 and not ARGV[a] then return rows end
