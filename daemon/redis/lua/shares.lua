-- A key that readers hold together: 'R', then ' <end>,<value>' for each daemon that has a share, its end in ms of the server's clock, 16 digits. A share is
-- over when the clock is beyond its end; the key has the TTL of the share that ends last. '!' in front of all: they are broken, see break.lua.
-- One string has one fate: no share outlives another by an eviction, and whoever reads the key sees that it is taken.
local SHARES_MOST = 256

-- The shares that are not over; nil: bare is no such text.
local function shares_in(bare)
  if type(bare) ~= 'string' or string.byte(bare) ~= 82 then return nil end
  local list, text = {}, {'R'}
  for ends, value in string.gmatch(bare, ' (%d+),(%S+)') do
    if #ends ~= 16 then return nil end
    text[#text + 1] = ends .. ',' .. value
    if tonumber(ends) >= now_ms then list[#list + 1] = {ends = tonumber(ends), value = value} end
  end
  return #text > 1 and table.concat(text, ' ') == bare and list or nil
end

-- The value without the '!' that break.lua puts in front, and whether it was there.
local function unbroken(current)
  local broken = type(current) == 'string' and string.byte(current) == 33
  return broken and string.sub(current, 2) or current, broken
end

-- What stands at the key: the value, its shares (nil: it is held by one), whether it is broken, and the value without '!'. nil: nothing, or shares that are
-- all over.
local function standing(key)
  local current = call('GET', key)
  local bare, broken = unbroken(current)
  local list = shares_in(bare)
  if list and #list == 0 then return nil end
  return current, list, broken, bare
end
