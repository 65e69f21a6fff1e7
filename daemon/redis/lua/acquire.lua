-- What the fence key holds; see acquire_settled.
local written = fence

-- Raises the fence key before a token is granted: an error in between leaves a gap in the tokens, never a key without its token. The first acquire that may be
-- granted raises it for all that follow, as if all of them were.
local acquire_fence = asked.a and function(a)
  local top = fence
  for i = a + 1, #ARGV, FIELDS do
    if ARGV[i] == 'a' then
      local base, proposal, range = top + 1, tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5])
      if proposal > base and proposal <= limit_us then base = proposal end
      if range == 0 or base + range <= limit_us then top = base + range end
    end
  end
  local err = refused(redis.pcall('SET', KEYS[2], digits(top)))
  if not err then written = top end
  return err
end

-- Not all were granted.
local acquire_settled = asked.a and function()
  if written > fence then redis.pcall('SET', KEYS[2], digits(fence)) end
end

-- Takes the key if it is free or already has our value.
-- The key may already have our value, because a renewal on a newer connection overtook this call and set the key again. That renewal may have asked for a
-- longer lease, so the TTL never shrinks, as in extend.lua.
-- A ticket is queued if the key cannot be granted, and the holder's daemon is told that the name is wanted.
-- row: G base px '' | B fence pttl holder | W fence 0 '' (free, but reserved for an older ticket) | K fence pttl ''
--      Q fence -2 marker | L fence -2 '' (late) | F fence -2 '' (range beyond the limit) | ! message
local acquire = asked.a and function(a, key, queue, value, px, proposal, range, not_after, ticket, ticket_ms, reserve_ms)
  if not joined then return {'Q', fence, -2, marker} end
  if not_after > 0 and now_ms > not_after then return {'L', fence, -2, ''} end
  local base = fence + 1
  if proposal > base and proposal <= limit_us then base = proposal end
  -- A range beyond the limit is refused. A single token never is, because a clock that was set back would stop all grants.
  local beyond = range > 0 and base + range > limit_us
  -- A free key that nobody waits for takes one command. All else, errors too, takes the long way.
  if not anybody and not beyond and (base + range <= written or not acquire_fence(a)) then
    local done = redis.pcall('SET', key, value, 'PX', px, 'NX')
    if done and not done.err then
      fence = base + range
      return {'G', base, px, ''}
    end
  end
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
  if line and queue_keeps(queue, line, ticket, reserve_ms) then
    if ticket ~= '' then queue_join(queue, ticket, ticket_ms) end
    return {'W', fence, 0, ''}
  end
  if beyond then return {'F', fence, -2, ''} end
  local err = base + range > written and acquire_fence(a)
  if err then return {'!', err} end
  fence = base + range
  err = refused(redis.pcall('SET', key, value, 'PX', px))
  if err then return {'!', err} end
  if line then queue_served(queue, line, ticket) end
  return {'G', base, px, ''}
end
