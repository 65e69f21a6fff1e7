-- r: a rate limit. At most `limit` in any window of `per_us`, by this server's clock: what is refused consumes nothing.
-- ARGV: 5 limit, 6 per_us, 7 cost, 8 peer, 9 all_most, 10 peer_most
-- reply: Y admitted, text "left reset_ms"   T refused: too many, text "left retry_ms"   B '*' or 'p': so many bytes are too many, see home.lua
-- !rates: the keys, as peer, "\n" and name, by the moment when they end (ms), and 256ths of a ms: how many blocks of pairs count for the peer.
-- The key: the peer that began it and "\n"; the longest window that was asked for, and how much had been consumed before the first pair; then pairs, in order: when, and how much had been consumed
-- by then. So the sum of a window is one difference. Both are digits, 16 of microseconds and 15, and the second counts modulo 10^15: what is remembered never
-- comes to so much. To let the consumption of a pair count as of the next one, it is enough to cut the pair out: that admits no more.
if op == 'r' then
  local PAIR, PAIRS, WRAP = 31, 1016, 1000000000000000 -- PAIR: bytes, also of the head
  local BLOCK_PAIRS = 4
  local limit, per, cost, all_most, peer_most = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[9]), tonumber(ARGV[10])
  local key, rates = base .. 'r:' .. name, base .. '!rates'
  sweep_rates()
  local peer, text = string.match(call('GET', key) or '', '^([^\n]*)\n(.*)$')
  peer, text = peer or ARGV[8], text or ''
  local function pair(at, sum) return string.format('%016.0f%015.0f', at, sum % WRAP) end
  if #text < PAIR or #text % PAIR ~= 0 then text = pair(per, 0) end
  local n = #text / PAIR - 1
  local function at(i) return tonumber(string.sub(text, i * PAIR + 1, i * PAIR + 16)) end -- at(0): the longest window
  local function sum(i) return tonumber(string.sub(text, i * PAIR + 17, i * PAIR + PAIR)) end
  local function put(after, when, total) text, n = string.sub(text, 1, (after + 1) * PAIR) .. pair(when, total), after + 1 end
  local function in_ms(us) return digits(math.ceil(us / 1000)) end
  -- The first pair, from `low` on, for which it is true; n + 1: none.
  local function first(low, is)
    local high = n + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if is(middle) then high = middle else low = middle + 1 end
    end
    return low
  end
  -- The clock was set back: what lies ahead of it was consumed by now.
  local total = sum(n)
  local ahead = first(1, function(i) return at(i) > now_us end)
  local longest, set_back = at(0), ahead <= n
  if set_back then put(ahead - 1, now_us, total) end
  -- What all windows have left behind goes.
  local live = first(1, function(i) return at(i) + longest > now_us end)
  longest = math.max(longest, per)
  text, n = pair(longest, sum(live - 1)) .. string.sub(text, live * PAIR + 1), n - live + 1
  local function thin()
    local kept = {string.sub(text, 1, PAIR)}
    for i = n % 2 == 0 and 2 or 1, n, 2 do kept[#kept + 1] = string.sub(text, i * PAIR + 1, i * PAIR + PAIR) end
    text, n = table.concat(kept), #kept - 1
  end
  -- False: so many bytes are too many: of '*' or 'p'. Where there is no room for more pairs, half of them go.
  local function keep()
    local member, px = peer .. '\n' .. name, math.floor(longest / 1000) + 2
    local score = call('ZSCORE', rates, member)
    local had = score and score % 1 * 256 or 0
    local function more() return (math.ceil((n + 1) / BLOCK_PAIRS) - had) * BLOCK + (score and 0 or rate_bytes(name, peer)) end
    while n > 1 and more() > 0 and exceeds(peer, more(), all_most, peer_most) do thin() end
    local much = more() > 0 and exceeds(peer, more(), all_most, peer_most)
    if much then return false, much end
    if more() ~= 0 then charge(peer, more()) end
    call('ZADD', rates, string.format('%.17g', now_ms + px + math.ceil((n + 1) / BLOCK_PAIRS) / 256), member)
    call('SET', key, peer .. '\n' .. text, 'PX', digits(px))
    return true
  end
  if set_back then keep() end
  local from = first(1, function(i) return at(i) + per > now_us end)
  local used = (total - sum(from - 1)) % WRAP
  if used + cost > limit then
    local enough = first(from, function(i) return (total - sum(i)) % WRAP + cost <= limit end)
    return {now_us, 'T', digits(math.max(limit - used, 0)) .. ' ' .. in_ms(at(enough) + per - now_us)}
  end
  if (total - sum(0)) % WRAP + cost >= WRAP then return {now_us, 'T', '0 ' .. in_ms(at(1) + longest - now_us)} end
  if cost > 0 then
    -- One pair a ms; of a larger limit one for each 64th of the window, which counts as of its last consumption.
    local slice = limit > 1000 and math.max(math.floor(per / 64), 1000) or 1000
    local same = n > 0 and math.floor(at(n) / slice) == math.floor(now_us / slice)
    put(same and n - 1 or n, now_us, total + cost)
    if n > PAIRS then thin() end -- windows of several lengths
    local kept, much = keep()
    if not kept then return {now_us, 'B', much} end
  end
  return {now_us, 'Y', digits(limit - used - cost) .. ' ' .. in_ms(used + cost > 0 and at(n) + per - now_us or 0)}
end
