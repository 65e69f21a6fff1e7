-- Health and membership in one reply. The script reads INFO itself, so marker, identity and clock are of the same moment.
-- KEYS: 1 marker, 2 fence
-- reply: {server_us, marker, fence, run_id, replid, version, role, maxmemory, policy, evicted, loading, bgsave, aof write,
--         replid2, bytes of replication read, append-only file, seconds of the last snapshot}
--        a field that the server lacks, or that the user may not read, is ''
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local function info(section)
  local text = redis.pcall('INFO', section)
  return type(text) == 'string' and text or ''
end
-- Each field is a line of its own: '\n<field>:'. Plain searches are fast, and Redis does nothing else meanwhile.
local function say(text, field)
  local _, colon = string.find(text, field, 1, true)
  return colon and string.sub(text, colon + 1, (string.find(text, '\r', colon, true) or 0) - 1) or ''
end
local server, replication, memory, persistence, stats = info('server'), info('replication'), info('memory'), info('persistence'), info('stats')
return {now_us, string.sub(redis.call('GET', KEYS[1]) or '', 1, 256), redis.call('GET', KEYS[2]) or '0',
  say(server, '\nrun_id:'), say(replication, '\nmaster_replid:'), say(server, '\nredis_version:'), say(replication, '\nrole:'),
  say(memory, '\nmaxmemory:'), say(memory, '\nmaxmemory_policy:'), say(stats, '\nevicted_keys:'),
  say(persistence, '\nloading:'), say(persistence, '\nrdb_last_bgsave_status:'), say(persistence, '\naof_last_write_status:'),
  say(replication, '\nmaster_replid2:'), say(stats, '\ntotal_net_repl_input_bytes:'),
  say(persistence, '\naof_enabled:'), say(persistence, '\nrdb_last_bgsave_time_sec:')}
