-- Takes the key from its holder by force: nobody can renew it any more, and nobody gets it before its holder has released it or its TTL is over. So '!' is put
-- in front of the value, which then equals no value; the TTL stays. The holder's daemon is told. Only a key that no redlockd wrote is deleted, since nobody
-- would release it: what: '' tells what stands there; '<daemon-id>:<number>:<12 hex>' breaks that value; '+' breaks all shares; '#…' deletes that foreign value.
-- row: X fence pttl '' (broken) | R fence -2 '' (deleted) | M fence -2 '' (missing) | B fence pttl what (something else) | K fence pttl '' | Q fence -2 marker
--      ! message
local take = asked.b and function(key, queue, what)
  if not joined then return {'Q', fence, -2, marker} end
  local current, list, broken, bare = standing(key)
  local pttl = call('PTTL', key)
  if not current then return {'M', fence, -2, ''} end
  if type(current) == 'table' or refused(pttl) then return occupied(key, current) end
  local stands = list and '+' or public(bare)
  if stands == '' then stands = '#' .. #bare .. ':' .. string.sub(bare, 1, 100) end
  if stands ~= what then return {'B', fence, pttl, stands} end
  if string.sub(what, 1, 1) == '#' then
    local err = refused(call('DEL', key))
    if err then return {'!', err} end
    local line = queue_line(queue)
    if line then queue_freed(queue, line) end
    wake_head(key, line)
    return {'R', fence, -2, ''}
  end
  if not broken then
    local done = pttl < 0 and call('SET', key, '!' .. current) or call('SET', key, '!' .. current, 'PX', math.max(pttl, 1))
    local err = refused(done)
    if err then return {'!', err} end
  end
  if list then publish_readers(list, 'b', key) else publish(string.match(what, '^([^:]+):'), 'b', key) end
  return {'X', fence, pttl, ''}
end
