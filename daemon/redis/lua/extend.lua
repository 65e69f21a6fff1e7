-- Renews the key, raises the fence to a floor, and replaces the value when the key is left behind.
-- how: '0' the key must exist; '1' a missing key is set again, unless the call is late; '2' the key is left behind: its TTL becomes px even if it was
-- longer, once; '3' the key is left behind, and its TTL becomes px at most. With '0' and '1' the TTL never shrinks: a late renewal must not shorten what
-- a longer one promised.
-- beyond: '0' the floor must be within the limit; else the floor may exceed it: see daemon/core/member/members.h
-- form: 'x' as one that holds it alone; 'n' as a share: see sharing.lua
-- row: E fence px '' | A fence px '' | B fence pttl holder | X fence -2 '' (broken, see break.lua) | K fence pttl '' | M fence -2 '' | Q fence -2 marker
--      F fence -2 '' | ! message
local extend = renews and function(key, queue, value, new_value, px, floor, beyond, late, how, form, ticket, ticket_ms)
  if not joined then return {'Q', fence, -2, marker} end
  local current, list, broken, bare = standing(key)
  if current then write_without_memory() end
  if form == 'n' then
    return share_extend(key, queue, current, list, broken, bare, value, new_value, px, floor, beyond, late, how, ticket, ticket_ms)
  end
  local code = 'E'
  if not current then
    if how ~= '1' or late then return {'M', fence, -2, ''} end
    code = 'A'
  elseif bare ~= value and bare ~= new_value then
    return in_the_way(key, current, list, broken)
  elseif broken and (how == '0' or how == '1') then
    return {'X', fence, -2, ''}
  elseif how ~= '2' or current == new_value then
    local pttl = call('PTTL', key)
    local err = refused(pttl)
    if err then return {'!', err} end
    if how == '2' or how == '3' then
      if pttl >= 0 and pttl < px then px = math.max(pttl, 1) end
    elseif pttl > px then
      px = pttl
    end
  end
  if floor > fence then
    if floor > limit_us and beyond == '0' then return {'F', fence, -2, ''} end
    local err = fence_raise(floor)
    if err then return {'!', err} end
    fence = floor
  end
  -- Cheaper than a SET, and permitted where Redis has no memory left for one.
  if current ~= new_value or px <= 0 or call('PEXPIRE', key, px) ~= 1 then
    local err = refused(call('SET', key, new_value, 'PX', px))
    if err then return {'!', err} end
  end
  if how ~= '0' then queue_renewed(key, queue, code, how) end
  return {code, fence, px, ''}
end
