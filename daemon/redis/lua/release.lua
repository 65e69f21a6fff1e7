-- Deletes the key if the value matches, and wakes the first ticket of the queue. Ignores the marker.
-- prior: prior values, separated by blanks; the key may have any of them instead of value. false: it never had a share, either.
-- row: 1 (released) | 0 (no key of that value) | ! message
local release = releases and function(key, queue, value, prior)
  local current, list, broken, bare = standing(key)
  if list and prior then return share_release(key, queue, list, broken, value, prior) end
  if bare ~= value and not (prior and stands_in(prior, bare)) then
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
