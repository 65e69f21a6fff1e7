-- Health and membership in one reply. INFO is read inside the script, so marker, identity and clock belong together.
-- KEYS: 1 marker, 2 fence
-- reply: {server_us, marker, fence, run_id, replid, version, role, maxmemory, policy, evicted, loading, bgsave, aof write}
--        a field that this server does not tell, or may not tell, is ''
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local told = ''
for _, section in ipairs({'server', 'replication', 'memory', 'persistence', 'stats'}) do
  local text = redis.pcall('INFO', section)
  if type(text) == 'string' then told = told .. '\n' .. text end
end
-- Each field is a line of its own. Plain searches: Redis does nothing else while this runs.
local function say(key)
  local _, colon = string.find(told, '\n' .. key .. ':', 1, true)
  if not colon then return '' end
  return string.sub(told, colon + 1, (string.find(told, '\r', colon, true) or 0) - 1)
end
return {now_us, string.sub(redis.call('GET', KEYS[1]) or '', 1, 256), redis.call('GET', KEYS[2]) or '0',
  say('run_id'), say('master_replid'), say('redis_version'), say('role'), say('maxmemory'), say('maxmemory_policy'),
  say('evicted_keys'), say('loading'), say('rdb_last_bgsave_status'), say('aof_last_write_status')}
