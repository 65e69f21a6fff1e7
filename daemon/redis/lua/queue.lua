-- The queue of a name: a sorted set, member = ticket of a waiting daemon, score = when the ticket expires unless refreshed (ms). Its key is
-- "redlockd:<prefix>q:<name>", and of a slot "redlockd:<prefix>qs:<name>". A ticket starts with 16 digits of a clock and is chosen by its daemon, so the order
-- is the same on every server. The queue can only refuse: safety does not depend on it.
-- A member '~<ticket>' is a note: since when a free lock has been reserved for that ticket, from the release or from the first request that is refused for it.
-- Its score is NOTE_MS later, and no ticket lasts longer than NOTE_MS. A note is removed when its daemon asks again, and when the lock is taken: each time
-- that the lock becomes free the reserved time begins anew.
local NOTE_MS = 60000

-- The queued tickets and their notes; nil: the queue is empty.
local queue_line = queued and function(queue)
  if not anybody or call('EXISTS', queue) ~= 1 then return nil end
  call('ZREMRANGEBYSCORE', queue, '-inf', now_ms)
  local members = call('ZRANGE', queue, 0, -1, 'WITHSCORES')
  local tickets, since, head = {}, {}, nil
  if members.err then return nil end
  for i = 1, #members, 2 do
    local member, ends = members[i], tonumber(members[i + 1])
    if ends > now_ms + NOTE_MS then -- no score is made that late: the clock was set back since, and daemons that still wait ask again
      call('ZREM', queue, member)
    elseif string.sub(member, 1, 1) == '~' then
      since[string.sub(member, 2)] = ends - NOTE_MS
    else
      tickets[#tickets + 1] = member
      if not head or member < head then head = member end
    end
  end
  return {tickets = tickets, since = since, head = head}
end

-- How a ticket ends tells what it is for. ':s': a reader is the first of its daemon that waits; with 16 digits behind it: since when the first writer there
-- waits. Otherwise a writer is the first. Where a ticket stands in the way of readers that came later: nil:
-- nowhere.
local bar_of = wakes and function(ticket)
  local since = string.match(ticket, ':s(%d*)$')
  if not since then return string.sub(ticket, 1, 16) end
  return since ~= '' and since or nil
end

-- Whether that ticket stands in the way of a reader with this one.
local bars = asked.s and function(other, ticket)
  local bar = other ~= ticket and bar_of(other)
  return bar and (ticket == '' or bar < string.sub(ticket, 1, 16))
end

-- The first place where any but our own ticket does; nil: none does.
local queue_bar = wakes and function(line, own)
  local least
  for _, ticket in ipairs(line and line.tickets or {}) do
    local bar = ticket ~= own and bar_of(ticket)
    if bar and (not least or bar < least) then least = bar end
  end
  return least
end

-- Whether any ticket does.
local queue_bars = asked.s and function(line, ticket)
  for _, other in ipairs(line and line.tickets or {}) do
    if bars(other, ticket) then return true end
  end
  return false
end

-- The free lock is reserved for this ticket from now on.
local queue_note = queued and function(queue, ticket)
  call('ZADD', queue, now_ms + NOTE_MS, '~' .. ticket)
end

-- Messages may be lost, so daemons that wait have a timer as well.
local publish = queued and function(daemon, what, key)
  if not daemon then return end
  local channel = string.sub(KEYS[1], 1, -6) .. 'd:' .. daemon -- in place of '!meta'
  call('PUBLISH', channel, what .. key)
end

-- Whether a free lock is reserved for an older ticket. A ticket that leaves the lock unused for reserve_ms is passed over, and only that ticket. A reserved
-- time that begins here is news for the first: no release has woken its daemon, which may have been told that the key ends later.
local queue_keeps = acquires and function(key, queue, line, ticket, reserve_ms, shared)
  local kept, begins = false, false
  reserve_ms = tonumber(reserve_ms)
  for _, older in ipairs(line.tickets) do
    if shared and bars(older, ticket) or not shared and (ticket == '' or older < ticket) then
      local since = line.since[older]
      if not since then
        queue_note(queue, older)
        begins = true
      end
      kept = kept or not since or now_ms - since < reserve_ms
    end
  end
  if begins then publish(string.match(line.head, '^%d+:([^:]+)'), 'w', key) end
  return kept
end

-- The lock is free from now on: the reserved time begins at the release, so at about the same moment on all servers. If it began at the first request, the
-- servers would reserve and grant the lock out of step.
local queue_freed = releases and function(queue, line)
  for _, ticket in ipairs(line.tickets) do queue_note(queue, ticket) end
end

-- The lock is taken: removes the ticket that took it, and all notes. One by one, because unpack fails on thousands of members.
local queue_served = queued and function(queue, line, ticket)
  call('ZREM', queue, ticket)
  for other in pairs(line.since) do call('ZREM', queue, '~' .. other) end
end

-- KEYS[3] lasts at least as long as any queue. Returns the error, or false: the lock can do without its queue, so nothing is refused.
local queue_join = (asked.a or asked.s or asked.n) and function(queue, ticket, ticket_ms)
  ticket_ms = tonumber(ticket_ms)
  local left = call('PTTL', KEYS[3])
  if type(left) ~= 'number' or left < 3 * ticket_ms then call('SET', KEYS[3], '1', 'PX', 6 * ticket_ms) end
  anybody = true
  local err = refused(call('ZADD', queue, now_ms + ticket_ms, ticket))
  if err then return err end
  call('ZREM', queue, '~' .. ticket)
  call('PEXPIRE', queue, 3 * ticket_ms)
  return false
end

local tell_ticket = wakes and function(ticket, key)
  publish(string.match(ticket, '^%d+:([^:]+)'), 'w', key)
end

-- Wakes whose turn it may be. shares: whether any stand. If a reader is the first, all readers up to the next writer are. Where shares stand, these
-- readers are. news: the key may end sooner than the first was told, so that one is woken in any case.
local wake_head = wakes and function(key, line, shares, news)
  if not line or not line.head then return end
  if not shares and not string.find(line.head, ':s%d*$') then return tell_ticket(line.head, key) end
  local least = queue_bar(line)
  for _, ticket in ipairs(line.tickets) do
    local reads = string.find(ticket, ':s%d*$') and not (least and least < string.sub(ticket, 1, 16))
    if reads or news and ticket == line.head then tell_ticket(ticket, key) end
  end
end

-- A key that was set again is taken. If a key was left behind, the first ticket was told a longer TTL before, so it is woken.
local queue_renewed = queued and renews and function(key, queue, code, how)
  if code == 'A' then
    local line = queue_line(queue)
    if line then queue_served(queue, line, '') end
  elseif how == '2' or how == '3' then
    wake_head(key, queue_line(queue))
  end
end

-- Removes the ticket. If the lock is free, the first ticket is woken, and its reserved time begins if it was not the first before. Of a key or share that was
-- left behind only the first was told how soon it ends: who becomes the first is woken as well. Where readers hold the lock, others may join them now.
-- KEYS[3] may be gone before a queue: evicted, or over while the clock was ahead and nobody used that queue. So the ticket is looked for all the same.
-- row: 1
local withdraw = asked.x and function(key, queue, ticket)
  local left = call('ZREM', queue, ticket, '~' .. ticket)
  if left == 0 and not anybody then return 1 end
  anybody = true
  local line = queue_line(queue)
  local moved_up = line and line.head and left ~= 0 and ticket < line.head
  local current, list = standing(key)
  local free = not current
  if free and moved_up then queue_note(queue, line.head) end
  if free or moved_up or list then wake_head(key, line, list, moved_up) end
  return 1
end
