-- Takes the key if it is free or already has our value. The fence is raised before the key is set: an error in between leaves a gap in the tokens, never a key
-- without its token.
-- The key may already have our value, because a renewal on a newer connection overtook this call and set the key again. That renewal may have asked for a
-- longer lease, so the TTL never shrinks, as in extend.lua.
-- A ticket is queued if the key cannot be granted, and the holder's daemon is told that the name is wanted.
-- shared: the value is that of a share: it may stand beside other shares. It raises the fence like any other, so whoever is exclusive afterwards has a larger
-- token. Where shares stand, a reader that would pass a writer in the queue is refused.
-- row: base (granted with the TTL that it asked for) | G base px '' or since (of a share: since when a writer waits) | B fence pttl holder
--      W fence 0 '' (free, but reserved for an older ticket)
--      (B, S and K: and the error, if the ticket was not queued)
--      S fence pttl holder (readers hold it) | K fence pttl '' | Q fence -2 marker | L fence -2 '' (late) | F fence -2 '' (range beyond the limit) | ! message
local acquire = acquires and function(key, queue, value, px, proposal, range, late, ticket, ticket_ms, reserve_ms, shared)
  if not joined then return {'Q', fence, -2, marker} end
  if late then return {'L', fence, -2, ''} end
  local base = fence + 1
  if proposal > base and proposal <= limit_us then base = proposal end
  -- A range beyond the limit is refused. A single token never is, because a clock that was set back would stop all grants.
  local beyond = range > 0 and base + range > limit_us
  -- A free key that nobody waits for takes one command. All else, errors too, takes more.
  if not anybody and not beyond and not shared and not fence_raise(base + range) then
    local done = call('SET', key, value, 'PX', px, 'NX')
    if done and not done.err then
      fence = base + range
      return base
    end
  end
  local current, list, broken = standing(key)
  local line = (not current or list) and queue_line(queue) or nil
  local joins = list and shared and not broken and (share_of(list, value) or #list < SHARES_MOST and not queue_bars(line, ticket))
  if list and shared and not broken and not share_of(list, value) and (limit_of(value) or limit_of(list[1].value)) then
    joins = #list < SHARES_MOST and share_suits(list, value) -- whoever wants the name of a semaphore as a lock is refused
  end
  if current and current ~= value and not joins then
    local placeless = ticket ~= '' and queue_join(queue, ticket, ticket_ms)
    if ticket ~= '' then
      if list and not shared then
        publish_readers(list, 'c', key)
      elseif type(current) == 'string' and not list then
        publish(string.match(public(current), '^([^:]+):'), 'c', key)
      end
    end
    local row = occupied(key, current, list, broken)
    if placeless and row[4] then row[5] = placeless end
    return row
  end
  if current and not list then
    local pttl = call('PTTL', key)
    local err = refused(pttl)
    if err then return {'!', err} end
    px = math.max(px, pttl)
  end
  if not current and line and queue_keeps(key, queue, line, ticket, reserve_ms, shared) then
    if ticket ~= '' then queue_join(queue, ticket, ticket_ms) end
    return {'W', fence, 0, ''}
  end
  if beyond then return {'F', fence, -2, ''} end
  local err = fence_raise(base + range)
  if err then return {'!', err} end
  fence = base + range
  local text, key_px = value, px
  if shared and current ~= value then
    local share = share_put(list or {}, value, share_ends(px))
    px = share.ends - now_ms
    text, key_px = shares_text(list or {share})
  end
  err = refused(call('SET', key, text, 'PX', key_px))
  if err then return {'!', err} end
  if line then queue_served(queue, line, ticket) end
  return {'G', base, px, shared and queue_bar(line, ticket) or ''}
end
