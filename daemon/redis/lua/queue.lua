-- The daemons that wait for a name: a sorted set, member = ticket, score = the moment when it ends unless refreshed (ms). A ticket starts with 16
-- digits of a clock and is chosen by who waits, so its order is the same on every server. The queue only ever refuses: safety does not rest on it.
-- A member '~<ticket>' notes since when a free lock has been left to that ticket, from its release or the first request that is refused for it; its score is
-- NOTE_MS later, and no ticket lasts longer than that. A note goes when its owner asks again, and when the lock is taken: each free moment has a grace
-- of its own.
local NOTE_MS = 60000

-- The tickets in line and what is noted of them; nil: nobody stands there.
local queue_line = queued and function(queue)
  if redis.pcall('EXISTS', queue) ~= 1 then return nil end
  redis.pcall('ZREMRANGEBYSCORE', queue, '-inf', now_ms)
  local members = redis.pcall('ZRANGE', queue, 0, -1, 'WITHSCORES')
  local tickets, since, head = {}, {}, nil
  if members.err then return nil end
  for i = 1, #members, 2 do
    local member, ends = members[i], tonumber(members[i + 1])
    if ends > now_ms + NOTE_MS then -- later than any is made to: the clock has been set back since, and whoever still waits asks again
      redis.pcall('ZREM', queue, member)
    elseif string.sub(member, 1, 1) == '~' then
      since[string.sub(member, 2)] = ends - NOTE_MS
    else
      tickets[#tickets + 1] = member
      if not head or member < head then head = member end
    end
  end
  return {tickets = tickets, since = since, head = head}
end

-- The free lock is left to this ticket from now on.
local queue_note = queued and function(queue, ticket)
  redis.pcall('ZADD', queue, now_ms + NOTE_MS, '~' .. ticket)
end

-- Whether a free lock is kept for somebody older. One that leaves it unused for grace_ms is passed over, and only that one.
local queue_keeps = asked.a and function(queue, line, ticket, grace_ms)
  local kept = false
  grace_ms = tonumber(grace_ms)
  for _, older in ipairs(line.tickets) do
    if ticket == '' or older < ticket then
      local since = line.since[older]
      if not since then queue_note(queue, older) end
      kept = kept or not since or now_ms - since < grace_ms
    end
  end
  return kept
end

-- The lock is free from now on. Were that noted only when somebody asks, servers that differ in whether anybody did would in turn keep and grant it.
local queue_freed = queued and asked.r and function(queue, line)
  for _, ticket in ipairs(line.tickets) do queue_note(queue, ticket) end
end

-- The lock is taken: what was noted while it was free is over, and so is the turn of who took it. One by one: unpack fails on thousands.
local queue_served = queued and function(queue, line, ticket)
  redis.pcall('ZREM', queue, ticket)
  for other in pairs(line.since) do redis.pcall('ZREM', queue, '~' .. other) end
end

local queue_join = asked.a and function(queue, ticket, ticket_ms)
  ticket_ms = tonumber(ticket_ms)
  redis.pcall('ZADD', queue, now_ms + ticket_ms, ticket)
  redis.pcall('ZREM', queue, '~' .. ticket)
  redis.pcall('PEXPIRE', queue, 3 * ticket_ms)
end

-- At most once, as publish/subscribe is: whoever waits has a timer as well.
local tell = queued and function(daemon, what, key)
  if not daemon then return end
  local channel = string.sub(KEYS[1], 1, -6) .. 'd:' .. daemon -- in place of '!meta'
  redis.pcall('PUBLISH', channel, what .. key)
end

local wake_head = queued and function(key, line)
  if line and line.head then tell(string.match(line.head, '^%d+:([^:]+)'), 'w', key) end
end

-- A key that was put back is taken; of one that is left behind the first in line was told a longer time.
local queue_renewed = queued and asked.e and function(key, queue, code, how)
  if code == 'A' then
    local line = queue_line(queue)
    if line then queue_served(queue, line, '') end
  elseif how == '2' or how == '3' then
    wake_head(key, queue_line(queue))
  end
end

-- Gives the place in line back; if the lock is free, the next in line is told, and has a grace of its own if it was not the first before.
-- row: X fence -2 ''
local withdraw = asked.x and function(key, queue, ticket)
  local left = redis.pcall('ZREM', queue, ticket, '~' .. ticket)
  if redis.pcall('EXISTS', key) == 0 then
    local line = queue_line(queue)
    if line and line.head and left ~= 0 and ticket < line.head then queue_note(queue, line.head) end
    wake_head(key, line)
  end
  return {'X', fence, -2, ''}
end
