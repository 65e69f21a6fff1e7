-- Deletes the key if the value matches, whatever the marker says, and wakes the first in line.
-- row: R fence -2 '' | N fence -2 '' | ! message
local function release(key, queue, value)
  local current = redis.pcall('GET', key)
  if current ~= value then
    local err = unreadable(current)
    if err then return {'!', err} end
    return {'N', fence, -2, ''}
  end
  local err = refused(redis.pcall('DEL', key))
  if err then return {'!', err} end
  wake_head(key, queue)
  return {'R', fence, -2, ''}
end
