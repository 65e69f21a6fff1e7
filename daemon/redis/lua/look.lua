-- The first ticket of the queue behind a blank; '': nobody waits. Unlike queue_line it removes nothing.
local look_head = asked.l and function(queue)
  local members, head = anybody and call('ZRANGE', queue, 0, -1, 'WITHSCORES') or {}, nil
  for i = 1, #members, 2 do
    local member, ends = members[i], tonumber(members[i + 1])
    if ends > now_ms and string.sub(member, 1, 1) ~= '~' and (not head or member < head) then head = member end
  end
  return head and #head <= 128 and ' ' .. head or ''
end

-- Reads the key and its queue; changes nothing.
-- row: M fence -2 next (missing) | B fence pttl holder+next | S fence pttl holder+next (readers) | K fence pttl next | Q fence -2 marker | ! message
-- next: see look_head
local look = asked.l and function(key, queue)
  if not joined then return {'Q', fence, -2, marker} end
  local current, list, broken = standing(key)
  local row = current and occupied(key, current, list, broken) or {'M', fence, -2, ''}
  if #row == 4 then row[4] = row[4] .. look_head(queue) end
  return row
end
