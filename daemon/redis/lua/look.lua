-- Reads the key; changes nothing.
-- row: M fence -2 '' (missing) | B fence pttl holder | K fence pttl '' | Q fence -2 marker | ! message
local look = asked.l and function(key)
  if not joined then return {'Q', fence, -2, marker} end
  local current = call('GET', key)
  if current then return occupied(key, current) end
  return {'M', fence, -2, ''}
end
