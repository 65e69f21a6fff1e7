-- What is done to a share, see shares.lua.

-- When a share of that TTL ends.
local share_ends = (asked.s or asked.n) and function(px) return math.min(now_ms + math.max(px, 1), 9007199254740992) end

-- The text of the key, and its TTL.
local shares_text = (asked.s or asked.n or asked.R) and function(list)
  local text, last = {'R'}, now_ms + 1
  for _, share in ipairs(list) do
    text[#text + 1] = string.format('%016.0f,', share.ends) .. share.value
    last = math.max(last, share.ends)
  end
  return table.concat(text, ' '), last - now_ms
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
local publish_readers = queued and function(list, what, key)
  for _, share in ipairs(list) do publish(string.match(public(share.value), '^([^:]+):'), what, key) end
end

-- Takes our values out of the list. Returns the other shares; when our last ends, nil: there was none; and whether the new value was among them.
local share_split = (asked.n or asked.R) and function(list, value, new_value)
  local others, ends, again = {}, nil, false
  for _, share in ipairs(list) do
    if share.value == value or share.value == new_value then
      ends, again = math.max(ends or 0, share.ends), again or share.value == new_value
    else
      others[#others + 1] = share
    end
  end
  return others, ends, again
end

local share_write = (asked.n or asked.R) and function(key, list, broken)
  local text, px = shares_text(list)
  return refused(call('SET', key, broken and '!' .. text or text, 'PX', px))
end

-- A ticket that is shown with a renewal: somebody waits behind this share. The other daemons that have a share are told.
local share_show = asked.n and function(key, queue, others, ticket, ticket_ms)
  if ticket == '' then return end
  queue_join(queue, ticket, ticket_ms)
  publish_readers(others, 'c', key)
end

-- A renewal as a share: our value is or becomes a share; one that stands alone is shared from now on. A missing share is put back like a missing key.
-- Row E fence px since: as with a grant.
-- how, beyond: see extend.lua.
local share_extend = asked.n and function(key, queue, current, list, broken, bare, value, new_value, px, floor, beyond, late, how, ticket, ticket_ms)
  local leaves, alone, code = how == '2' or how == '3', current and not list, 'E'
  local others, ends, again = share_split(list or {}, value, new_value)
  if alone and (bare == value or bare == new_value) then
    local pttl = call('PTTL', key)
    local err = refused(pttl)
    if err then return {'!', err} end
    ends, again = math.min(now_ms + math.max(pttl, 0), 9007199254740992), bare == new_value
  end
  if current and ends and broken and not leaves then return {'X', fence, -2, ''} end
  if not ends then
    local may = how == '1' and not late and not alone and not broken and #others < SHARES_MOST and share_suits(others, new_value)
    if not may then return current and in_the_way(key, current, list, broken) or {'M', fence, -2, ''} end
    code = 'A'
  end
  local last = share_ends(px)
  if leaves and (how == '3' or again) then
    last = math.max(math.min(last, ends), now_ms + 1)
  elseif not leaves then
    last = math.max(last, ends or 0)
  end
  if floor > fence then
    if floor > limit_us and beyond == '0' then return {'F', fence, -2, ''} end
    local err = fence_raise(floor)
    if err then return {'!', err} end
    fence = floor
  end
  others[#others + 1] = {ends = last, value = new_value}
  local err = share_write(key, others, broken)
  if err then return {'!', err} end
  others[#others] = nil
  share_show(key, queue, others, ticket, ticket_ms)
  if queued and (how ~= '0' and code == 'A' and not current) then queue_renewed(key, queue, code, how) end
  if queued and (leaves or alone) then wake_head(key, queue_line(queue), true, leaves) end
  return {code, fence, last - now_ms, queue_bar(queue_line(queue), ticket) or ''}
end

-- The shares of these values are over. Other readers may go on; when the last one has gone, the key is deleted.
local share_release = asked.R and function(key, queue, list, broken, value)
  local others, ends = share_split(list, value, value)
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
  wake_head(key, line, #others > 0)
  return 1
end
