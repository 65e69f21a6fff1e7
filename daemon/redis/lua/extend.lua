-- Whether the value that stands there is one of those, which blanks separate.
local function stands_in(prior, current)
  if prior == '' or type(current) ~= 'string' then return false end
  for value in string.gmatch(prior, '[^ ]+') do
    if value == current then return true end
  end
  return false
end

-- Renews the key, lifts the fence to a floor, and changes the value when a lease is adopted.
-- how: '0' the key must be there; '1' a key that is gone is put back, unless this comes late; '2' the key is left behind for px from the first time on, even if that is shorter;
-- '3' it is left behind for px at most. Otherwise a key never ends sooner than before: a renewal that runs late, after a longer one, must not take back what the longer one promised.
-- beyond: '0' the floor must be within the limit; else it is the fence of another store whose clock was set back: see daemon/core/quorum.h
-- prior: values of former lives of the daemon, any of which may stand in the place of value.
-- row: E fence px '' | A fence px '' | B fence pttl holder | K fence pttl '' | M fence -2 '' | Q fence -2 marker | F fence -2 '' | ! message
local extend = asked.e and function(key, queue, value, new_value, px, floor, beyond, not_after, how, prior)
  if not joined then return {'Q', fence, -2, marker} end
  local current = redis.pcall('GET', key)
  local code = 'E'
  if not current then
    not_after = tonumber(not_after)
    if how ~= '1' or (not_after > 0 and now_ms > not_after) then return {'M', fence, -2, ''} end
    code = 'A'
  elseif current ~= value and current ~= new_value and not stands_in(prior, current) then
    return occupied(key, current)
  elseif how ~= '2' or current == new_value then
    local pttl = redis.pcall('PTTL', key)
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
    local err = refused(redis.pcall('SET', KEYS[2], digits(floor)))
    if err then return {'!', err} end
    fence = floor
  end
  local err = refused(redis.pcall('SET', key, new_value, 'PX', px))
  if err then return {'!', err} end
  if how ~= '0' then queue_renewed(key, queue, code, how) end
  return {code, fence, px, ''}
end
