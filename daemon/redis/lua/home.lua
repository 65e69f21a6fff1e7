-- A question to the home of a rate limit or of a queue (daemon/core/round/home.h). Each operation has a file of its own, which stands behind this one.
-- The store keeps what the first daemon called it, and answers no daemon that calls it otherwise: that one would look for homes elsewhere than all others.
-- KEYS: 1 marker, 2 fence, 3 there if anybody may wait
-- ARGV: 1 expected marker, 2 what the daemon calls this store, 3 name of the limit or queue, 4 operation, then its arguments
-- reply: {server_us, code, text}   Q marker differs (text = it)   N the store goes by another name (text = it)   else as the operation says
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now_ms = math.floor(now_us / 1000)
local marker = string.sub(call('GET', KEYS[1]) or '', 1, 256)
if marker ~= ARGV[1] then return {now_us, 'Q', marker} end
local base = string.sub(KEYS[1], 1, -6) -- "redlockd:<prefix>"
local name, op = ARGV[3], ARGV[4]
local named = call('GET', base .. '!home')
if named == '' then named = nil end
if not named and (op ~= 'n' or ARGV[5] == '1') then
  call('SET', base .. '!home', ARGV[2])
  named = ARGV[2]
elseif named and named ~= ARGV[2] then
  return {now_us, 'N', string.sub(named, 1, 256)}
end
-- n: what the store is called. ARGV: 5 '1': a store without a name takes this one. H: it goes by this name, or text '': by none
if op == 'n' then return {now_us, 'H', named or ''} end
local function digits(n) return string.format('%.0f', n) end

-- What jobs and rate limits take here, in bytes: '*' is all of it, 'p' .. peer what the clients of one peer have stored.
local stored = base .. '!stored'

local function stored_bytes(field)
  return tonumber(call('HGET', stored, field) or '0')
end

local function charge(peer, bytes)
  local all, of_peer = stored_bytes('*') + bytes, stored_bytes('p' .. peer) + bytes
  if all <= 0 then return call('DEL', stored) end
  call('HSET', stored, '*', digits(all))
  if peer == '' then return end
  if of_peer > 0 then call('HSET', stored, 'p' .. peer, digits(of_peer)) else call('HDEL', stored, 'p' .. peer) end
end

local RATE, BLOCK, SWEEP = 256, 128, 32
local function rate_bytes(of, peer) return RATE + 8 * #of + 2 * #peer end
-- Rate limits that are over no longer count. !rates: see rate.lua
local function sweep_rates()
  local rates = base .. '!rates'
  local over = call('ZRANGEBYSCORE', rates, '-inf', digits(now_ms), 'WITHSCORES', 'LIMIT', 0, SWEEP)
  for i = 1, #over, 2 do
    local peer, of = string.match(over[i], '^([^\n]*)\n(.*)$')
    call('ZREM', rates, over[i])
    if of then charge(peer, -rate_bytes(of, peer) - over[i + 1] % 1 * 256 * BLOCK) end -- else somebody else has put it there
  end
end

-- Whether so many bytes more are too many: of '*', or of 'p', the peer. most: of all, and of one peer (0 = it may have all).
local function exceeds(peer, bytes, most, peer_most)
  if stored_bytes('*') + bytes > most then return '*' end
  if peer_most > 0 and stored_bytes('p' .. peer) + bytes > peer_most then return 'p' end
end

local function too_much(peer, bytes, most, peer_most)
  local much = exceeds(peer, bytes, most, peer_most)
  if not much then return end
  sweep_rates()
  return exceeds(peer, bytes, most, peer_most)
end
