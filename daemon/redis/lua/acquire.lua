-- Takes the key if it is free or already has our value. The fence is raised before the key is set: an error in between leaves a gap in the tokens, never a key
-- without its token.
-- The key may already have our value, because a renewal on a newer connection overtook this call and set the key again. That renewal may have asked for a
-- longer lease, so the TTL never shrinks, as in extend.lua.
-- A ticket is queued if the key cannot be granted, and the holder's daemon is told that the name is wanted.
-- row: base (granted with the TTL that it asked for) | G base px '' | B fence pttl holder | W fence 0 '' (free, but reserved for an older ticket)
--      K fence pttl '' | Q fence -2 marker | L fence -2 '' (late) | F fence -2 '' (range beyond the limit) | ! message
local acquire = acquires and function(key, queue, value, px, proposal, range, late, ticket, ticket_ms, reserve_ms)
  if not joined then return {'Q', fence, -2, marker} end
  if late then return {'L', fence, -2, ''} end
  local base = fence + 1
  if proposal > base and proposal <= limit_us then base = proposal end
  -- A range beyond the limit is refused. A single token never is, because a clock that was set back would stop all grants.
  local beyond = range > 0 and base + range > limit_us
  -- A free key that nobody waits for takes one command. All else, errors too, takes more.
  if not anybody and not beyond and not fence_raise(base + range) then
    local done = call('SET', key, value, 'PX', px, 'NX')
    if done and not done.err then
      fence = base + range
      return base
    end
  end
  local current = call('GET', key)
  if current and current ~= value then
    if ticket ~= '' then
      queue_join(queue, ticket, ticket_ms)
      if type(current) == 'string' then tell(string.match(public(current), '^([^:]+):'), 'c', key) end
    end
    return occupied(key, current)
  end
  if current then
    local pttl = call('PTTL', key)
    local err = refused(pttl)
    if err then return {'!', err} end
    px = math.max(px, pttl)
  end
  local line = not current and queue_line(queue) or nil
  if line and queue_keeps(queue, line, ticket, reserve_ms) then
    if ticket ~= '' then queue_join(queue, ticket, ticket_ms) end
    return {'W', fence, 0, ''}
  end
  if beyond then return {'F', fence, -2, ''} end
  local err = fence_raise(base + range)
  if err then return {'!', err} end
  fence = base + range
  err = refused(call('SET', key, value, 'PX', px))
  if err then return {'!', err} end
  if line then queue_served(queue, line, ticket) end
  return {'G', base, px, ''}
end
