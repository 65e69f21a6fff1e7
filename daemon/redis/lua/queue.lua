-- The daemons that wait for a name: a sorted set, member = ticket, score = the moment when it ends unless refreshed (ms). A ticket starts with 16
-- digits of a clock and is chosen by who waits, so its order is the same on every server. The queue only ever refuses: safety does not rest on it.
-- A member '~<ticket>' notes since when a free lock has been kept for that head; its score is NOTE_MS later.
local NOTE_MS = 60000
local channel = string.sub(KEYS[1], 1, -6) .. 'd:' -- in place of '!meta'

local function queue_head(queue)
  if redis.pcall('EXISTS', queue) ~= 1 then return nil end
  redis.pcall('ZREMRANGEBYSCORE', queue, '-inf', now_ms)
  local members = redis.pcall('ZRANGE', queue, 0, -1)
  local head = nil
  if members.err then return nil end
  for i = 1, #members do
    local member = members[i]
    if string.sub(member, 1, 1) ~= '~' and (not head or member < head) then head = member end
  end
  return head
end

-- A head that leaves a free lock unused for grace_ms is passed over.
local function queue_passes(queue, head, grace_ms)
  local noted = redis.pcall('ZSCORE', queue, '~' .. head)
  if type(noted) == 'string' then return now_ms - (tonumber(noted) - NOTE_MS) >= grace_ms end
  redis.pcall('ZADD', queue, now_ms + NOTE_MS, '~' .. head)
  return false
end

local function queue_join(queue, ticket, ticket_ms)
  redis.pcall('ZADD', queue, now_ms + ticket_ms, ticket)
  redis.pcall('PEXPIRE', queue, 3 * ticket_ms)
end

-- At most once, as publish/subscribe is: whoever waits has a timer as well.
local function tell(daemon, what, key)
  if daemon then redis.pcall('PUBLISH', channel .. daemon, what .. key) end
end

local function wake_head(key, queue)
  local head = queue_head(queue)
  if head then tell(string.match(head, '^%d+:([^:]+)'), 'w', key) end
end

-- Gives the place in line back; if the lock is free, the next in line is told.
-- row: X fence -2 ''
local function withdraw(key, queue, ticket)
  redis.pcall('ZREM', queue, ticket, '~' .. ticket)
  if redis.pcall('EXISTS', key) == 0 then wake_head(key, queue) end
  return {'X', fence, -2, ''}
end
