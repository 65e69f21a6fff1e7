-- j: the jobs of a queue, at its home: one operation a call, and the work of each is bounded. It stands behind home.lua.
-- Keys, "redlockd:<prefix>" and then
--   j:<queue>  hash: 'h' .. id -> "due failed value lock", value: of its lease, '-' = none; 'p' .. id -> payload; 'v' .. value -> id
--   jd:<queue> ids by the moment when they are due (ms)       jl:<queue> those that are leased, by the end of the lease
--   jx:<queue> those that have failed too often, by the moment of the last failure
--   jw:<queue> hash: daemon that waits for a job -> "since, until when unless refreshed" (ms)     !queues names of queues that have jobs
--   !deferred  nonces of the DEFERs that were carried out, by the moment from which on no try of them may be (ms)
-- ARGV: 4 j, 5 operation, then its arguments; the text of a reply is a list of words, each with its length and ':' in front
--   defer id payload lock delay_ms most nonce not_after_ms [due_ms failed]
--         D left_ms (due so soon)   F count (there are `most` already)   L (late)
--         an id that is due or leased stays as it is, and a nonce that was answered D changes nothing; not_after_ms 0: not known
--         due_ms: its place among those that are due, of one that is due already (by the clock), before 0 is 0; failed: so many attempts have failed elsewhere
--   take value ttl_ms attempts not_after_ms daemon life_ms more after_ms after_id lock…
--         J id attempt lock payload due_ms (of the clock)   W next_ms (nothing is due; in so long something may be, -1 = not known)
--         C after_ms after_id (call again)   L (late)
--         daemon waits for life_ms, 0 = it does not; more: it goes on waiting after a J, for others. Only jobs behind `after`, and of no such lock
--   renew value new_value ttl_ms [before]       K   M (no job has any of these values)
--   payload value                               P payload   M
--   done value                                  R   M
--   retry value delay_ms attempts               R   M         the attempt has failed
--   back value wakes                            R   M         there was no attempt
--   revive id delay_ms                          R   M         one that has failed too often is due again
--   leave daemon                                R             it no longer waits
--   list from                                   T next_from (-1 = that is all), then of each job: id state ms failed lock payload
--   queues from                                 T next_from, then of each queue: name due leased dead next_ms
op = ARGV[5]
local SWEEP, SCAN, ROWS, BYTES = 32, 128, 64, 65536
local KEEP_MS = 15000 -- longer than any daemon repeats a DEFER
local jobs, due, leased, dead, waiting, queues = base .. 'j:' .. name, base .. 'jd:' .. name, base .. 'jl:' .. name, base .. 'jx:' .. name,
  base .. 'jw:' .. name, base .. '!queues'
local deferred = base .. '!deferred'

local function reply(code, ...)
  local text = {...}
  for i = 1, #text do
    if type(text[i]) == 'number' then text[i] = digits(text[i]) end
    text[i] = #text[i] .. ':' .. text[i]
  end
  return {now_us, code, table.concat(text)}
end

-- Of one job.
local function job_read(id)
  local when, failed, value, lock = string.match(call('HGET', jobs, 'h' .. id) or '', '^(%d+) (%d+) (%S+) (.*)$')
  return when and {due = tonumber(when), failed = tonumber(failed), value = value, lock = lock}
end

local function job_write(id, job)
  call('HSET', jobs, 'h' .. id, digits(job.due) .. ' ' .. digits(job.failed) .. ' ' .. job.value .. ' ' .. job.lock)
end

-- How many jobs there are, of each kind. Reading them first shows a key of another type before anything is written.
local function counts(of)
  return call('ZCARD', base .. 'jd:' .. of), call('ZCARD', base .. 'jl:' .. of), call('ZCARD', base .. 'jx:' .. of)
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
  call('ZADD', due, digits(job.due), id)
  if job.due <= now_ms or call('ZRANK', due, id) == 0 then return true end
end

-- Ends its lease.
local function job_unlease(id, job)
  call('ZREM', leased, id)
  call('HDEL', jobs, 'v' .. job.value)
  job.value = '-'
end

-- An attempt has failed. True: it is due first.
local function job_fail(id, job, delay_ms, attempts)
  job_unlease(id, job)
  job.failed = job.failed + 1
  job.due = now_ms + delay_ms
  job_write(id, job)
  if job.failed < attempts then return job_make_due(id, job) end
  call('ZADD', dead, digits(now_ms), id)
end

-- The job of this lease.
local function job_of(value)
  local id = call('HGET', jobs, 'v' .. value)
  local job = id and job_read(id)
  if job and job.value == value then return id, job end
end

local operation = {}

-- This DEFER is carried out: no other try of it will be.
local function defer_note(nonce, not_after_ms)
  local over = call('ZRANGEBYSCORE', deferred, '-inf', '(' .. digits(now_ms), 'LIMIT', 0, SWEEP)
  if #over > 0 then call('ZREM', deferred, unpack(over)) end
  call('ZADD', deferred, digits(not_after_ms > 0 and math.min(not_after_ms, now_ms + KEEP_MS) or now_ms + KEEP_MS), nonce)
  call('PEXPIRE', deferred, KEEP_MS)
end

function operation.defer(id, payload, lock, delay_ms, most, nonce, not_after_ms, due_ms, failed)
  if not_after_ms > 0 and now_ms > not_after_ms then return reply('L') end
  local n_due, n_leased, n_dead = counts(name)
  local job = job_read(id)
  local is_due = job and job.value == '-' and call('ZSCORE', due, id)
  local again = tonumber(call('ZSCORE', deferred, nonce) or '-1') >= now_ms
  if again or is_due or job and job.value ~= '-' then
    if not again then defer_note(nonce, not_after_ms) end
    return reply('D', is_due and math.max(job.due - now_ms, 0) or 0)
  end
  if n_due + n_leased + n_dead - (call('ZSCORE', dead, id) and 1 or 0) >= tonumber(most) then return reply('F', n_due + n_leased + n_dead) end
  defer_note(nonce, not_after_ms)
  call('ZADD', queues, 0, name)
  call('ZREM', dead, id)
  call('HSET', jobs, 'p' .. id, payload)
  job = {due = math.max(0, math.min(due_ms or now_ms + delay_ms, now_ms + delay_ms)), failed = failed or 0, value = '-', lock = lock}
  job_write(id, job)
  if job_make_due(id, job) then wake() end
  return reply('D', math.max(job.due - now_ms, 0))
end

local function wait(daemon, life_ms, again)
  local since = not again and string.match(call('HGET', waiting, daemon) or '', '^(%d+) ') or string.format('%016.0f', now_ms)
  call('HSET', waiting, daemon, since .. ' ' .. digits(now_ms + life_ms))
  call('PEXPIRE', waiting, 3 * life_ms)
end

-- Leases that are over: their attempts have failed.
local function sweep(attempts)
  for _, id in ipairs(call('ZRANGEBYSCORE', leased, '-inf', digits(now_ms), 'LIMIT', 0, SWEEP)) do
    local job = job_read(id)
    if job then
      job_fail(id, job, 0, attempts)
    else
      call('ZREM', leased, id)
    end
  end
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
  if tonumber(call('ZSCORE', due, after_id) or '-1') == after_ms then return call('ZRANK', due, after_id) + 1 end
  return call('ZCOUNT', due, '-inf', '(' .. digits(after_ms))
end

function operation.take(value, ttl_ms, attempts, not_after_ms, daemon, life_ms, more, after_ms, after_id, ...)
  local busy = {}
  if not_after_ms > 0 and now_ms > not_after_ms then return reply('L') end
  for _, lock in ipairs({...}) do busy[lock] = true end
  counts(name)
  if life_ms > 0 then wait(daemon, life_ms) end
  sweep(attempts)
  local from = place_behind(after_ms, after_id)
  local ids = call('ZRANGE', due, from, from + SCAN - 1, 'WITHSCORES')
  for i = 1, #ids, 2 do
    local id, when = ids[i], tonumber(ids[i + 1])
    if when > now_ms then break end
    local job = job_read(id)
    if not job then
      call('ZREM', due, id)
    elseif not busy[job.lock] or job.lock == '' then
      job.value = value
      job_write(id, job)
      call('HSET', jobs, 'v' .. value, id)
      call('ZREM', due, id)
      call('ZADD', leased, digits(now_ms + ttl_ms), id)
      if life_ms > 0 and more == 0 then call('HDEL', waiting, daemon) elseif life_ms > 0 then wait(daemon, life_ms, true) end
      local first = call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
      if first and tonumber(first) <= now_ms then wake(daemon) end
      return reply('J', id, job.failed + 1, job.lock, call('HGET', jobs, 'p' .. id) or '', when)
    end
    if i == 2 * SCAN - 1 then return reply('C', when, id) end
  end
  return reply('W', next_ms(due, leased))
end

function operation.renew(value, new_value, ttl_ms, before)
  local id, job = job_of(value)
  if not id then id, job = job_of(new_value) end
  if not id and before then id, job = job_of(before) end
  if not id then return reply('M') end
  if job.value ~= new_value then
    call('HDEL', jobs, 'v' .. job.value)
    job.value = new_value
    job_write(id, job)
    call('HSET', jobs, 'v' .. new_value, id)
  end
  if tonumber(call('ZSCORE', leased, id) or '0') < now_ms + ttl_ms then call('ZADD', leased, digits(now_ms + ttl_ms), id) end
  return reply('K')
end

function operation.payload(value)
  local id = job_of(value)
  if not id then return reply('M') end
  return reply('P', call('HGET', jobs, 'p' .. id) or '')
end

function operation.done(value)
  local id = job_of(value)
  if not id then return reply('M') end
  call('HDEL', jobs, 'h' .. id, 'p' .. id, 'v' .. value)
  call('ZREM', leased, id)
  local n_due, n_leased, n_dead = counts(name)
  if n_due + n_leased + n_dead == 0 then call('ZREM', queues, name) end
  return reply('R')
end

function operation.retry(value, delay_ms, attempts)
  local id, job = job_of(value)
  if not id then return reply('M') end
  if job_fail(id, job, delay_ms, attempts) then wake() end
  return reply('R')
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
  local job = call('ZSCORE', dead, id) and job_read(id)
  if not job then return reply('M') end
  call('ZREM', dead, id)
  job.due, job.failed = now_ms + delay_ms, 0
  job_write(id, job)
  if job_make_due(id, job) then wake() end
  return reply('R')
end

-- A message may have gone to it that the next one should have got.
function operation.leave(daemon)
  call('HDEL', waiting, daemon)
  local first = call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
  if first and tonumber(first) <= now_ms then wake() end
  return reply('R')
end

function operation.list(from)
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
        local job, payload = job_read(ids[i]), call('HGET', jobs, 'p' .. ids[i]) or ''
        local ms = math.max(0, kind[2] == 'dead' and now_ms - ids[i + 1] or ids[i + 1] - now_ms)
        for _, text in ipairs({ids[i], kind[2], digits(ms), digits(job and job.failed or 0), job and job.lock or '', payload}) do
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
  defer = {4, 5, 7, 8, 9}, take = {2, 3, 4, 6, 7, 8}, renew = {3}, payload = {}, done = {}, retry = {2, 3}, back = {}, revive = {2}, leave = {}, list = {1}, queues = {1}
}
local argument = {unpack(ARGV, 6)}
for _, i in ipairs(NUMBERS[op]) do argument[i] = tonumber(argument[i]) end
return operation[op](unpack(argument))
