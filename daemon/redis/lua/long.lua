-- The long way, for the entries that are left. A function is created only if one of them needs it, because creating it costs as much as a command.
local WIDTH = {a = 9, s = 9, k = 3, K = 3, e = 8, n = 10, r = 2, R = 2, x = 2, l = 1, b = 2, t = 3}
local asked, i = {}, a
while ARGV[i] do
  asked[ARGV[i]] = true
  i = i + WIDTH[ARGV[i]]
end
for i in pairs(slow) do
  if slow[i] then asked[i > releases_n and 'a' or 'r'] = true end
end
local acquires, renews, releases = asked.a or asked.s, asked.k or asked.K or asked.e or asked.n, asked.r or asked.R or asked.b
local queued = acquires or releases or asked.K or asked.e or asked.n or asked.x or asked.l -- whether an entry may use its queue
local wakes = queued and (releases or renews or asked.s or asked.x)

-- No name of a lock leads to the queue of a slot. A configured prefix never begins with "redlockd:".
local function queue_of(key)
  local from = #KEYS[1] - 13
  return string.sub(KEYS[1], 1, -6) .. 'q' .. (string.sub(key, 1, 9) == 'redlockd:' and string.sub(key, from + 9) or ':' .. string.sub(key, from))
end

-- A number as a string: tostring would keep 14 digits only.
local function digits(n) return string.format('%.0f', n) end

-- The part of a value that others may see: "<daemon-id>:<number>", and of 32 hex digits the 12 that tell since when; '' for a value that no redlockd wrote.
local function public(value)
  local id, secret = string.match(value, '^([^:]+:[^:]+):(%x+)$')
  return id and #value <= 128 and (#secret == 32 and id .. ':' .. string.sub(secret, 1, 12) or id) or ''
end

-- The error of a command (out of memory, read-only, no permission), or false. It must not affect the other entries of the batch.
local function refused(reply) return type(reply) == 'table' and reply.err end

-- A server that has no memory left refuses each SET, but not once the script has written. What takes the place of another value needs no memory.
local function write_without_memory() call('DEL', string.sub(KEYS[1], 1, -6) .. '!none') end

-- An error of GET other than WRONGTYPE tells nothing about the key.
local function unreadable(current)
  local err = refused(current)
  return err and not string.find(err, 'WRONGTYPE', 1, true) and err
end

-- The row for a key that is not ours, as standing() found it. current is a table (the WRONGTYPE error) if the key is of another type. Of shares the one that
-- ends last is shown.
local function occupied(key, current, list, broken)
  if list then
    local last = list[1]
    for _, share in ipairs(list) do
      if share.ends > last.ends then last = share end
    end
    local shown = public(last.value)
    return {'S', fence, last.ends - now_ms, broken and '!' .. shown or shown}
  end
  local pttl = call('PTTL', key)
  local err = unreadable(current) or refused(pttl)
  if err then return {'!', err} end
  if type(current) == 'table' then return {'K', fence, pttl, ''} end
  return {'B', fence, pttl, public(current)}
end

-- The same for a renewal.
local function in_the_way(key, current, list, broken)
  local row = occupied(key, current, list, broken)
  if row[1] == 'S' then row[1] = 'B' end
  return row
end

-- 0: it may come at any time.
local function is_late(not_after)
  not_after = tonumber(not_after)
  return not_after > 0 and now_ms > not_after
end

-- Raises the fence key, if it is below this token. What was too much is taken back at the end.
local function fence_raise(token)
  if token <= written then return false end
  local err = refused(call('SET', KEYS[2], digits(token)))
  if not err then written = token end
  return err
end
