-- Deletes the key if the value matches, and wakes the first ticket of the queue. Ignores the marker.
-- prior: prior values, separated by blanks; the key may have any of them instead of value.
-- row: R fence -2 '' | N fence -2 '' | ! message
local release = asked.r and function(key, queue, value, prior)
  local current = redis.pcall('GET', key)
  if current ~= value and not stands_in(prior, current) then
    local err = unreadable(current)
    if err then return {'!', err} end
    return {'N', fence, -2, ''}
  end
  local err = refused(redis.pcall('DEL', key))
  if err then return {'!', err} end
  local line = queue_line(queue)
  if line then queue_freed(queue, line) end
  wake_head(key, line)
  return {'R', fence, -2, ''}
end
