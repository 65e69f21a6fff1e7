-- Takes the key if it is free, or is ours already. The fence goes up before the key is set: a refusal in between leaves
-- a gap in the tokens, never a key without its token. F: the range would exceed the limit; ask again for less.
-- A key that is ours already was put back by a renewal that overtook this call on a newer connection. That renewal may have asked for a longer lease: as in
-- extend.lua, the key never ends sooner than before.
-- With a ticket the asker joins the queue when it cannot have the lock, and the holder's daemon is told that somebody waits.
-- row: G base px '' | B fence pttl holder | W fence 0 '' (free, but kept for an older ticket) | K fence pttl '' | Q fence -2 marker | L fence -2 '' | F fence -2 '' | ! message
local acquire = asked.a and function(key, queue, value, px, proposal, range, not_after, ticket, ticket_ms, grace_ms)
  if not joined then return {'Q', fence, -2, marker} end
  if not_after > 0 and now_ms > not_after then return {'L', fence, -2, ''} end
  local current = redis.pcall('GET', key)
  if current and current ~= value then
    if ticket ~= '' then
      queue_join(queue, ticket, ticket_ms)
      if type(current) == 'string' then tell(string.match(public(current), '^([^:]+):'), 'c', key) end
    end
    return occupied(key, current)
  end
  if current then
    local pttl = redis.pcall('PTTL', key)
    local err = refused(pttl)
    if err then return {'!', err} end
    px = math.max(px, pttl)
  end
  local line = not current and queue_line(queue) or nil
  if line and queue_keeps(queue, line, ticket, grace_ms) then
    if ticket ~= '' then queue_join(queue, ticket, ticket_ms) end
    return {'W', fence, 0, ''}
  end
  local base = fence + 1
  if proposal > base and proposal <= limit_us then base = proposal end
  -- A range that would run ahead of the clock is refused; a single token never is, or a clock set back would stop all grants.
  if range > 0 and base + range > limit_us then return {'F', fence, -2, ''} end
  local err = refused(redis.pcall('SET', KEYS[2], digits(base + range)))
  if err then return {'!', err} end
  fence = base + range
  err = refused(redis.pcall('SET', key, value, 'PX', px))
  if err then return {'!', err} end
  if line then queue_served(queue, line, ticket) end
  return {'G', base, px, ''}
end
