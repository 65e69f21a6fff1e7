-- j: the jobs of a queue, at its home: one operation a call, and the work of each is bounded. It stands behind home.lua.
-- Keys, "redlockd:<prefix>" and then
--   j:<queue>  hash: 'h' .. id -> "due failed value number length peer lock", value: of its lease, '-' = none; number: the queue counts its jobs; length and
--              peer: who stored it; 'p' .. id -> payload; 'v' .. value -> id; 'n' the last number; 'q' the peer that began the queue
--   jd:<queue> 16 digits of the number and the id, by the moment when they are due (ms): of one moment the first that came is the first
--   jl:<queue> likewise those that are leased, by the end of the lease
--   jx:<queue> likewise those that have failed for good, by the moment of the last failure     !dead queues of such jobs, by such a moment or an earlier one
--   jw:<queue> hash: daemon that waits for a job -> "since, until when unless refreshed" (ms)     !queues names of queues that have jobs
--   !deferred  nonces of the DEFERs that were carried out, by the moment from which on no try of them may be (ms)
-- ARGV: 4 j, 5 operation, then its arguments; the text of a reply is a list of words, each with its length and ':' in front
--   defer id payload lock delay_ms most nonce not_after_ms peer all_most peer_most keep_ms
--         D left_ms (due so soon)   F count (there are `most` already)   B '*' or 'p' (so many bytes are too many: see home.lua)   L (late)
--         an id that is due or leased stays as it is, and a nonce that was answered D changes nothing; not_after_ms 0: not known
--   take value ttl_ms attempts not_after_ms daemon life_ms more after_ms after_id keep_ms lock…
--         J id attempt lock payload due_ms (of the clock)   W next_ms (nothing is due; in so long something may be, -1 = not known)
--         C after_ms after_id (call again)   L (late)     behind J, W and C: the ids of jobs that have failed for good with this call
--         daemon waits for life_ms, 0 = it does not; more: it goes on waiting after a J, for others. Only jobs behind `after`, and of no such lock
--   renew value ttl_ms                          K   M (no job has this value)
--   payload value                               P payload   M
--   done value                                  R   M
--   retry value delay_ms attempts               R [id]   M    the attempt has failed; id: and the job for good
--   back value wakes                            R   M         there was no attempt
--   revive id delay_ms                          R   M         one that has failed for good, or is delayed, is due so soon
--   drop id                                     R   M   H     one that is due or delayed, or has failed for good, is gone; H: it is leased
--   leave daemon                                R             it no longer waits
--   list from keep_ms                           T next_from (-1 = that is all), then of each job: id state ms failed lock payload
--   queues from                                 T next_from, then of each queue: name due leased dead next_ms
op = ARGV[5]
-- A server that has no memory left refuses what may need some, but not once the script has written. What it holds must be renewed, carried out and done with.
if op ~= 'defer' then redis.pcall('DEL', base .. '!none') end
local SCAN, ROWS, BYTES = 128, 64, 65536
local KEEP_MS = 15000 -- longer than any daemon repeats a DEFER
local JOB, QUEUE = 512, 2048 -- bytes of the keys of one, besides its texts: more than Redis 7.0 takes
local jobs, due, leased, dead, waiting, queues = base .. 'j:' .. name, base .. 'jd:' .. name, base .. 'jl:' .. name, base .. 'jx:' .. name,
  base .. 'jw:' .. name, base .. '!queues'
local deferred, deads = base .. '!deferred', base .. '!dead'

local function reply(code, ...)
  local text = {...}
  for i = 1, #text do
    if type(text[i]) == 'number' then text[i] = digits(text[i]) end
    text[i] = #text[i] .. ':' .. text[i]
  end
  return {now_us, code, table.concat(text)}
end

-- Of one job, of this queue or of another.
local function job_read(id, of)
  local when, failed, value, number, length, rest = string.match(call('HGET', of or jobs, 'h' .. id) or '', '^(%d+) (%d+) (%S+) (%d+) (%d+) (.*)$')
  return when and {due = tonumber(when), failed = tonumber(failed), value = value, number = number, peer = string.sub(rest, 1, length),
    lock = string.sub(rest, length + 1)}
end

local function job_write(id, job)
  call('HSET', jobs, 'h' .. id, table.concat({digits(job.due), digits(job.failed), job.value, job.number, #job.peer, job.peer .. job.lock}, ' '))
end

-- In the sets.
local function entry(id, job)
  return string.format('%016.0f', job.number) .. id
end

local function job_bytes(id, job, payload)
  return JOB + 4 * #id + #(payload or '') + #job.lock + #job.peer
end

-- How many jobs there are, of each kind.
local function counts(of)
  return call('ZCARD', base .. 'jd:' .. of), call('ZCARD', base .. 'jl:' .. of), call('ZCARD', base .. 'jx:' .. of)
end

-- Reads all keys that a job needs: one of another type shows before anything is written, and not as an empty queue.
local function keys_are_ours()
  for _, hash in ipairs({jobs, waiting, stored}) do call('HLEN', hash) end
  for _, set in ipairs({due, leased, dead, queues, deferred, deads}) do call('ZCARD', set) end
end

-- Wakes the daemon that has waited longest, if any waits and something is due, or due first. Messages may be lost, so it has a timer as well.
local function wake(but)
  if call('HLEN', waiting) == 0 then return end
  local first, least
  local all = call('HGETALL', waiting)
  for i = 1, #all, 2 do
    local since, ends = string.match(all[i + 1], '^(%d+) (%d+)$')
    if not since or tonumber(ends) <= now_ms then
      call('HDEL', waiting, all[i])
    elseif all[i] ~= but and (not least or since < least or since == least and all[i] < first) then
      first, least = all[i], since
    end
  end
  if first then call('PUBLISH', base .. 'd:' .. first, 't' .. string.sub(base, 10) .. name) end
end

local function job_make_due(id, job)
  call('ZADD', due, digits(job.due), entry(id, job))
  if job.due <= now_ms or call('ZRANK', due, entry(id, job)) == 0 then return true end
end

-- Ends its lease.
local function job_unlease(id, job)
  call('ZREM', leased, entry(id, job))
  call('HDEL', jobs, 'v' .. job.value)
  job.value = '-'
end

-- An attempt has failed. First: whether the job is due first; second: whether it has failed for good.
local function job_fail(id, job, delay_ms, attempts)
  job_unlease(id, job)
  job.failed = job.failed + 1
  job.due = now_ms + delay_ms
  job_write(id, job)
  if job.failed < attempts then return job_make_due(id, job) end
  call('ZADD', dead, digits(now_ms), entry(id, job))
  if not call('ZSCORE', deads, name) then call('ZADD', deads, digits(now_ms), name) end
  return false, true
end

-- The job of this lease.
local function job_of(value)
  local id = call('HGET', jobs, 'v' .. value)
  local job = id and job_read(id)
  if job and job.value == value then return id, job end
end

-- The job is in none of the sets any more; and the queue goes with its last one.
local function job_gone(id, job, of)
  local hash = base .. 'j:' .. of
  charge(job.peer, -job_bytes(id, job, call('HGET', hash, 'p' .. id)))
  call('HDEL', hash, 'h' .. id, 'p' .. id, 'v' .. job.value)
  local n_due, n_leased, n_dead = counts(of)
  if n_due + n_leased + n_dead > 0 then return end
  charge(call('HGET', hash, 'q') or '', -QUEUE - 8 * #of)
  call('DEL', hash)
  call('ZREM', queues, of)
  call('ZREM', deads, of)
end

-- Jobs end that failed for good so long ago: some of the queue that has the oldest, in each call.
local function sweep_dead(keep_ms)
  local first = call('ZRANGE', deads, 0, 0, 'WITHSCORES')
  local of, over = first[1], now_ms - keep_ms
  if not of or tonumber(first[2]) > over then return end
  for _, member in ipairs(call('ZRANGEBYSCORE', base .. 'jx:' .. of, '-inf', digits(over), 'LIMIT', 0, SWEEP)) do
    local id = string.sub(member, 17)
    local job = job_read(id, base .. 'j:' .. of)
    call('ZREM', base .. 'jx:' .. of, member)
    if job then job_gone(id, job, of) end
  end
  local next_one = call('ZRANGE', base .. 'jx:' .. of, 0, 0, 'WITHSCORES')[2]
  if next_one then call('ZADD', deads, next_one, of) else call('ZREM', deads, of) end
end

local operation = {}

-- This DEFER is carried out: no other try of it will be.
local function defer_note(nonce, not_after_ms)
  local over = call('ZRANGEBYSCORE', deferred, '-inf', '(' .. digits(now_ms), 'LIMIT', 0, SWEEP)
  if #over > 0 then call('ZREM', deferred, unpack(over)) end
  call('ZADD', deferred, digits(not_after_ms > 0 and math.min(not_after_ms, now_ms + KEEP_MS) or now_ms + KEEP_MS), nonce)
  call('PEXPIRE', deferred, KEEP_MS)
end

-- Too many bytes: of '*' or 'p'. Else they count from now on.
local function job_charge(id, job, payload, all_most, peer_most)
  local new = call('ZSCORE', queues, name) and 0 or QUEUE + 8 * #name
  local much = too_much(job.peer, new + job_bytes(id, job, payload), all_most, peer_most)
  if much then return much end
  if new > 0 then
    call('ZADD', queues, 0, name)
    call('HSET', jobs, 'q', job.peer)
  end
  charge(job.peer, new + job_bytes(id, job, payload))
end

function operation.defer(id, payload, lock, delay_ms, most, nonce, not_after_ms, peer, all_most, peer_most, keep_ms)
  if not_after_ms > 0 and now_ms > not_after_ms then return reply('L') end
  keys_are_ours()
  sweep_dead(keep_ms)
  local n_due, n_leased, n_dead = counts(name)
  local former = job_read(id)
  local is_due = former and former.value == '-' and call('ZSCORE', due, entry(id, former))
  local again = tonumber(call('ZSCORE', deferred, nonce) or '-1') >= now_ms
  if again or is_due or former and former.value ~= '-' then
    if not again then defer_note(nonce, not_after_ms) end
    return reply('D', is_due and math.max(former.due - now_ms, 0) or 0)
  end
  if n_due + n_leased + n_dead - (former and 1 or 0) >= most then return reply('F', n_due + n_leased + n_dead) end
  local job = {due = now_ms + delay_ms, failed = 0, value = '-', lock = lock, peer = peer}
  local much = job_charge(id, job, payload, all_most, peer_most)
  if much then return reply('B', much) end
  if former then
    charge(former.peer, -job_bytes(id, former, call('HGET', jobs, 'p' .. id)))
    call('ZREM', dead, entry(id, former))
  end
  defer_note(nonce, not_after_ms)
  call('HSET', jobs, 'p' .. id, payload)
  job.number = digits(tonumber(call('HGET', jobs, 'n') or '0') + 1)
  call('HSET', jobs, 'n', job.number)
  job_write(id, job)
  if job_make_due(id, job) then wake() end
  return reply('D', delay_ms)
end

local function wait(daemon, life_ms, again)
  local since = not again and string.match(call('HGET', waiting, daemon) or '', '^(%d+) ') or string.format('%016.0f', now_ms)
  call('HSET', waiting, daemon, since .. ' ' .. digits(now_ms + life_ms))
  call('PEXPIRE', waiting, 3 * life_ms)
end

-- Leases that are over: their attempts have failed. The ids of those that have failed for good.
local function sweep(attempts)
  local ended = {}
  for _, member in ipairs(call('ZRANGEBYSCORE', leased, '-inf', digits(now_ms), 'LIMIT', 0, SWEEP)) do
    local id = string.sub(member, 17)
    local job = job_read(id)
    if job then
      local _, for_good = job_fail(id, job, 0, attempts)
      if for_good then ended[#ended + 1] = id end
    else
      call('ZREM', leased, member)
    end
  end
  return ended
end

-- In so many milliseconds something may be due: -1: not known.
local function next_ms(due_key, leased_key)
  local first = call('ZRANGEBYSCORE', due_key, '(' .. digits(now_ms), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  local over = call('ZRANGE', leased_key, 0, 0, 'WITHSCORES')[2]
  if not (first or over) then return -1 end
  return math.max(0, math.min(tonumber(first or over), tonumber(over or first)) - now_ms)
end

-- The first place in the order of those that are due behind this one.
local function place_behind(after_ms, after_id)
  if after_id == '' then return 0 end
  local job = job_read(after_id)
  local member = job and entry(after_id, job)
  if member and tonumber(call('ZSCORE', due, member) or '-1') == after_ms then return call('ZRANK', due, member) + 1 end
  return call('ZCOUNT', due, '-inf', '(' .. digits(after_ms))
end

function operation.take(value, ttl_ms, attempts, not_after_ms, daemon, life_ms, more, after_ms, after_id, keep_ms, ...)
  local busy = {}
  if not_after_ms > 0 and now_ms > not_after_ms then return reply('L') end
  for _, lock in ipairs({...}) do busy[lock] = true end
  keys_are_ours()
  sweep_dead(keep_ms)
  if life_ms > 0 then wait(daemon, life_ms) end
  local ended = sweep(attempts)
  local from = place_behind(after_ms, after_id)
  local ids = call('ZRANGE', due, from, from + SCAN - 1, 'WITHSCORES')
  for i = 1, #ids, 2 do
    local id, when = string.sub(ids[i], 17), tonumber(ids[i + 1])
    if when > now_ms then break end
    local job = job_read(id)
    if not job then
      call('ZREM', due, ids[i])
    elseif not busy[job.lock] or job.lock == '' then
      job.value = value
      job_write(id, job)
      call('HSET', jobs, 'v' .. value, id)
      call('ZREM', due, ids[i])
      call('ZADD', leased, digits(now_ms + ttl_ms), ids[i])
      if life_ms > 0 and more == 0 then call('HDEL', waiting, daemon) elseif life_ms > 0 then wait(daemon, life_ms, true) end
      local first = call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
      if first and tonumber(first) <= now_ms then wake(daemon) end
      return reply('J', id, job.failed + 1, job.lock, call('HGET', jobs, 'p' .. id) or '', when, unpack(ended))
    end
    if i == 2 * SCAN - 1 then return reply('C', when, id, unpack(ended)) end
  end
  return reply('W', next_ms(due, leased), unpack(ended))
end

function operation.renew(value, ttl_ms)
  local id, job = job_of(value)
  if not id then return reply('M') end
  local member = entry(id, job)
  if tonumber(call('ZSCORE', leased, member) or '0') < now_ms + ttl_ms then call('ZADD', leased, digits(now_ms + ttl_ms), member) end
  return reply('K')
end

function operation.payload(value)
  local id = job_of(value)
  if not id then return reply('M') end
  return reply('P', call('HGET', jobs, 'p' .. id) or '')
end

function operation.done(value)
  local id, job = job_of(value)
  if not id then return reply('M') end
  call('ZREM', leased, entry(id, job))
  job_gone(id, job, name)
  return reply('R')
end

function operation.retry(value, delay_ms, attempts)
  local id, job = job_of(value)
  if not id then return reply('M') end
  local first, for_good = job_fail(id, job, delay_ms, attempts)
  if first then wake() end
  return reply('R', for_good and id or nil)
end

function operation.back(value, wakes)
  local id, job = job_of(value)
  if not id then return reply('M') end
  job_unlease(id, job)
  job_write(id, job)
  if job_make_due(id, job) and wakes == '1' then wake() end
  return reply('R')
end

function operation.revive(id, delay_ms)
  local job = job_read(id)
  if not job or job.value ~= '-' then return reply('M') end
  if call('ZREM', dead, entry(id, job)) == 1 then
    job.due, job.failed = now_ms + delay_ms, 0
  elseif job.due > now_ms or delay_ms > 0 then
    job.due = now_ms + delay_ms
  end
  job_write(id, job)
  if job_make_due(id, job) then wake() end
  return reply('R')
end

function operation.drop(id)
  local job = job_read(id)
  if not job then return reply('M') end
  if job.value ~= '-' then return reply('H') end
  if call('ZREM', dead, entry(id, job)) == 0 then call('ZREM', due, entry(id, job)) end
  job_gone(id, job, name)
  return reply('R')
end

-- A message may have gone to it that the next one should have got.
function operation.leave(daemon)
  call('HDEL', waiting, daemon)
  local first = call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
  if first and tonumber(first) <= now_ms then wake() end
  return reply('R')
end

function operation.list(from, keep_ms)
  sweep_dead(keep_ms)
  local rows, size, place = {'-1'}, 0, from
  for _, kind in ipairs({{due, 'due'}, {leased, 'leased'}, {dead, 'dead'}}) do
    local n = call('ZCARD', kind[1])
    if from >= n then
      from = from - n
    else
      local ids = call('ZRANGE', kind[1], from, from + ROWS - 1, 'WITHSCORES')
      for i = 1, #ids, 2 do
        if #rows > 6 * ROWS or size > BYTES then
          rows[1] = digits(place)
          return reply('T', unpack(rows))
        end
        local id = string.sub(ids[i], 17)
        local job, payload = job_read(id), call('HGET', jobs, 'p' .. id) or ''
        local ms = math.max(0, kind[2] == 'dead' and now_ms - ids[i + 1] or ids[i + 1] - now_ms)
        for _, text in ipairs({id, kind[2], digits(ms), digits(job and job.failed or 0), job and job.lock or '', payload}) do
          rows[#rows + 1] = text
          size = size + #text + #tostring(#text) + 1
        end
        place = place + 1
      end
      if from + ROWS < n then
        rows[1] = digits(place)
        return reply('T', unpack(rows))
      end
      from = 0
    end
  end
  return reply('T', unpack(rows))
end

function operation.queues(from)
  local names = call('ZRANGE', queues, from, from + ROWS - 1)
  local rows = {digits(#names == ROWS and from + ROWS or -1)}
  for _, of in ipairs(names) do
    local n_due, n_leased, n_dead = counts(of)
    for _, text in ipairs({of, digits(n_due), digits(n_leased), digits(n_dead), digits(next_ms(base .. 'jd:' .. of, base .. 'jl:' .. of))}) do
      rows[#rows + 1] = text
    end
  end
  return reply('T', unpack(rows))
end

-- Which arguments are numbers.
local NUMBERS = {
  defer = {4, 5, 7, 9, 10, 11}, take = {2, 3, 4, 6, 7, 8, 10}, renew = {2}, payload = {}, done = {}, retry = {2, 3}, back = {}, revive = {2}, drop = {},
  leave = {}, list = {1, 2}, queues = {1}
}
local argument = {unpack(ARGV, 6)}
for _, i in ipairs(NUMBERS[op]) do argument[i] = tonumber(argument[i]) end
return operation[op](unpack(argument))
