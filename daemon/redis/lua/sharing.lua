-- What is done to a share, see shares.lua.

-- When a share of that TTL ends.
local share_ends = (asked.s or renews) and function(px) return math.min(now_ms + math.max(px, 1), 9007199254740992) end

-- The text of the key, and its TTL.
local shares_text = (asked.s or renews or asked.R) and function(list)
  local text, last = {'R'}, now_ms + 1
  for _, share in ipairs(list) do
    text[#text + 1] = string.format('%016.0f,', share.ends) .. share.value
    last = math.max(last, share.ends)
  end
  return table.concat(text, ' '), last - now_ms
end

-- Whether the current value is one of the prior values, which are separated by blanks.
local stands_in = (renews or asked.R) and function(prior, current)
  if prior == '' or type(current) ~= 'string' then return false end
  for value in string.gmatch(prior, '[^ ]+') do
    if value == current then return true end
  end
  return false
end

local share_of = asked.s and function(list, value)
  for _, share in ipairs(list) do
    if share.value == value then return share end
  end
end

-- A share is that of a reader, or the mark of a semaphore, whose value tells the limit behind its number. All at one key are of one kind.
local limit_of = (asked.s or asked.n) and function(value) return string.match(value, '^[^:]*:%d+~(%d+):') end
local share_suits = (asked.s or asked.n) and function(list, value)
  return #list == 0 or limit_of(list[1].value) == limit_of(value)
end

-- The value has a share until then, or for longer if it had.
local share_put = asked.s and function(list, value, ends)
  local share = share_of(list, value)
  if not share then
    share = {ends = ends, value = value}
    list[#list + 1] = share
  end
  share.ends = math.max(share.ends, ends)
  return share
end

-- Tells the daemons that have a share.
local tell_readers = queued and function(list, what, key)
  for _, share in ipairs(list) do tell(string.match(public(share.value), '^([^:]+):'), what, key) end
end

-- Takes our values out of the list. Returns the other shares; when the last of ours ends, nil: there was none; and whether the new value was among them.
local share_split = (renews or asked.R) and function(list, value, new_value, prior)
  local others, ends, again = {}, nil, false
  for _, share in ipairs(list) do
    if share.value == value or share.value == new_value or stands_in(prior, share.value) then
      ends, again = math.max(ends or 0, share.ends), again or share.value == new_value
    else
      others[#others + 1] = share
    end
  end
  return others, ends, again
end

local share_write = (renews or asked.R) and function(key, list, broken)
  local text, px = shares_text(list)
  return refused(call('SET', key, broken and '!' .. text or text, 'PX', px))
end

-- A ticket that is shown with a renewal: somebody waits behind this share, or to have it alone. The other daemons that have a share are told.
local share_show = (asked.n or asked.u) and function(key, queue, others, ticket, ticket_ms)
  if ticket == '' then return end
  queue_join(queue, ticket, ticket_ms)
  tell_readers(others, 'c', key)
end

-- Of those that wait elsewhere to have their share alone the first one that is older than this; '': none. A ticket of the same daemon is one whose withdrawal
-- was lost.
local upgrade_before = asked.u and function(queue, ticket)
  local first, own = '', string.match(ticket, '^%d+:([^:]+)')
  local line = ticket ~= '' and queue_line(queue) or nil
  for _, other in ipairs(line and line.tickets or {}) do
    local daemon = string.match(other, '^%d+:([^:]+):.*:u$')
    if daemon and daemon ~= own and other < ticket and (first == '' or other < first) then first = other end
  end
  return first
end

-- A renewal where shares stand, or as a share. form:
-- 'n' our value is or becomes a share: one that stands alone is shared from now on. A missing share is put back like a missing key. Row E fence px
--     since: as with a grant.
-- 'u' our value stands alone from now on, if there is no other share. The token that the floor asks for was not given out before: the fence passes it. Else
--     our share is renewed: row S, with the ticket of somebody who asked for that before.
-- 'x' the same, with a floor like that of any renewal, and no ticket.
-- how, beyond, prior: see extend.lua.
local share_extend = renews and function(key, queue, current, list, broken, bare, value, new_value, px, floor, beyond, late, how, prior, form, ticket,
    ticket_ms)
  local leaves, alone, code = how == '2' or how == '3', current and not list, 'E'
  local others, ends, again = share_split(list or {}, value, new_value, prior)
  if alone and (bare == value or bare == new_value or stands_in(prior, bare)) then
    local pttl = call('PTTL', key)
    local err = refused(pttl)
    if err then return {'!', err} end
    ends, again = math.min(now_ms + math.max(pttl, 0), 9007199254740992), bare == new_value
  end
  if current and ends and broken and not leaves then return {'X', fence, -2, ''} end
  if not ends then
    local may = form == 'n' and how == '1' and not late and not alone and not broken and #others < SHARES_MOST and share_suits(others, new_value)
    if not may and not current then return {'M', fence, -2, ''} end
    if not may then
      local row = occupied(key, current, list, broken)
      if row[1] == 'S' then row[1] = 'B' end
      return row
    end
    code = 'A'
  end
  local last = share_ends(px)
  if leaves and (how == '3' or again) then
    last = math.max(math.min(last, ends), now_ms + 1)
  elseif not leaves then
    last = math.max(last, ends or 0)
  end
  local beside = form ~= 'n' and #others > 0
  local top = form == 'u' and math.max(fence + 1, floor) or floor
  if not beside and top > fence then
    if floor > fence and floor > limit_us and beyond == '0' then return {'F', fence, -2, ''} end
    local err = fence_raise(top)
    if err then return {'!', err} end
    fence = top
  end
  local err
  if form == 'n' or beside then
    others[#others + 1] = {ends = last, value = new_value}
    err = share_write(key, others, broken)
    others[#others] = nil
    if form ~= 'x' and not err then share_show(key, queue, others, ticket, ticket_ms) end
  else
    err = refused(call('SET', key, new_value, 'PX', math.max(last - now_ms, 1)))
  end
  if err then return {'!', err} end
  if queued and (how ~= '0' and code == 'A' and not current) then queue_renewed(key, queue, code, how) end
  if queued and (leaves or form == 'n' and alone) then wake_head(key, queue_line(queue), form == 'n' and #others + 1 or nil, leaves) end
  local text = ''
  if form == 'n' then text = queue_bar(queue_line(queue), ticket) or '' end
  if form == 'u' and beside then text = upgrade_before(queue, ticket) end
  return {beside and 'S' or code, fence, last - now_ms, text}
end

-- The shares of these values are over. Other readers may go on; when the last one has gone, the key is deleted.
local share_release = asked.R and function(key, queue, list, broken, value, prior)
  local others, ends = share_split(list, value, value, prior)
  if not ends then return 0 end
  local err
  if #others > 0 then
    write_without_memory()
    err = share_write(key, others, broken)
  else
    err = refused(call('DEL', key))
  end
  if err then return {'!', err} end
  local line = queue_line(queue)
  if line and #others == 0 then queue_freed(queue, line) end
  wake_head(key, line, #others > 0 and #others or nil)
  return 1
end
