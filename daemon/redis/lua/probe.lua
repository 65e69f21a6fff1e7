-- Health and membership in one reply. The script reads INFO itself, so marker, identity and clock are of the same moment.
-- KEYS: 1 marker, 2 fence, 3 there if anybody may wait
-- ARGV: 1 the id of the daemon that asks: it hears what is published for it
-- reply: {server_us, marker, fence, run_id, replid, version, role, maxmemory, policy, evicted, loading,
--         replid2, bytes of replication read, append-only file, seconds of the last snapshot, refusal, what the first daemon called it}
--        a field that the server lacks, or that the user may not read, is ''
--        an error: a command without which there is no answer, behind what the server says of it
local clock = redis.pcall('TIME')
if clock.err then return redis.error_reply(clock.err .. ': TIME') end
local now_us = clock[1] * 1000000 + clock[2]
local refusal = ''
local function refused(command, err)
  if refusal == '' then refusal = string.sub(command .. ' ' .. err, 1, 140) end
end
local function info(section)
  local text = redis.pcall('INFO', section)
  if type(text) == 'table' and text.err then refused('INFO', text.err) end
  return type(text) == 'string' and text or ''
end
local marker, fence = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[2])
local unread = type(marker) == 'table' and marker.err or type(fence) == 'table' and fence.err
if unread then return redis.error_reply(unread .. ': GET') end
local server, replication, memory, persistence, stats = info('server'), info('replication'), info('memory'), info('persistence'), info('stats')
-- Each field is a line of its own: '\n<field>:'. Plain searches are fast, and Redis does nothing else meanwhile.
local function say(text, field)
  local _, colon = string.find(text, field, 1, true)
  return colon and string.sub(text, colon + 1, (string.find(text, '\r', colon, true) or 0) - 1) or ''
end
-- Commands, each in a form that changes nothing: a server that refuses a command does so before it looks at the key. The first is one that a full server
-- refuses: once a script was allowed to write, it lets all others pass. `none` never exists; the key of the second can be no lock.
-- refusal: the first command that is refused, and its error; '-' in front if locks do not need it
local base = string.sub(KEYS[1], 1, -6) -- "redlockd:<prefix>"
local none = base .. '!none'
local function try(...)
  local done = redis.pcall(...)
  local err = type(done) == 'table' and done.err
  if err and not string.find(err, 'syntax error', 1, true) and not string.find(err, 'wrong number of arg', 1, true) then refused(..., err) end
end
try('SET', none, '', 'XX')
try('SET', string.sub(KEYS[1], 10, -6), '', 'NX', 'XX')
try('DEL', none)
try('PEXPIRE', none, '1')
try('MGET', none, string.sub(KEYS[1], 10, -6))
try('PTTL', none)
try('EXISTS', none)
try('ZADD', none, 'XX', '0', '')
try('ZREM', none, '')
try('ZREMRANGEBYSCORE', none, '0', '0')
try('ZRANGE', none, '0', '0')
try('HSET', none, '', '', '')
try('HDEL', none, '')
try('HGETALL', none)
-- Rate limits, jobs; a key of each kind, with no name behind it; and the messages, without which those who wait ask again by timer.
local locks = refusal
try('ZCARD', none)
try('ZCOUNT', none, '0', '0')
try('ZRANGEBYSCORE', none, '0', '0')
try('ZRANK', none, '')
try('ZSCORE', none, '')
try('HGET', none, '')
try('HLEN', none)
try('EXISTS', base .. 'q:', base .. 'qs:', base .. 's:', base .. 'r:', base .. 'j:', base .. 'jd:', base .. 'jl:', base .. 'jx:', base .. 'jw:')
try('PUBLISH', base .. 'd:' .. ARGV[1], '')
if locks == '' and refusal ~= '' then refusal = '-' .. refusal end
-- Whether what is written goes to an append-only file: 1 or 0. One that could not be begun, as the disk was full, is none.
local function append_only()
  local failed, size = say(persistence, '\naof_last_bgrewrite_status:') == 'err', say(persistence, '\naof_current_size:')
  if failed and (size == '0' or size == '') then return '0' end
  return say(persistence, '\naof_enabled:')
end
-- Seconds that the last snapshot took; -1: there was none, the last one failed, or what was changed hours ago is in none.
local function snapshot()
  local changes, saved = tonumber(say(persistence, '\nrdb_changes_since_last_save:')), tonumber(say(persistence, '\nrdb_last_save_time:'))
  local failed = say(persistence, '\nrdb_last_bgsave_status:') == 'err'
  if failed or (changes and saved and changes > 0 and clock[1] - saved > 7200) then return '-1' end
  return say(persistence, '\nrdb_last_bgsave_time_sec:')
end
local called = redis.pcall('GET', base .. '!home')
return {now_us, string.sub(marker or '', 1, 256), fence or '0',
  say(server, '\nrun_id:'), say(replication, '\nmaster_replid:'), say(server, '\nredis_version:'), say(replication, '\nrole:'),
  say(memory, '\nmaxmemory:'), say(memory, '\nmaxmemory_policy:'), say(stats, '\nevicted_keys:'),
  say(persistence, '\nloading:'),
  say(replication, '\nmaster_replid2:'), say(stats, '\ntotal_net_repl_input_bytes:'),
  append_only(), snapshot(), refusal,
  type(called) == 'string' and string.sub(called, 1, 256) or ''}
