-- Deletes the key if the value matches, and wakes the first ticket of the queue. Ignores the marker.
-- shared: it may be a share.
-- row: 1 (released) | 0 (no key of that value) | ! message
local release = releases and function(key, queue, value, shared)
  local current, list, broken, bare = standing(key)
  if list and shared then return share_release(key, queue, list, broken, value) end
  if bare ~= value then
    local err = unreadable(current)
    if err then return {'!', err} end
    return 0
  end
  local err = refused(call('DEL', key))
  if err then return {'!', err} end
  local line = queue_line(queue)
  if line then queue_freed(queue, line) end
  wake_head(key, line)
  return 1
end
