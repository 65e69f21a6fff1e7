# release.lua
s|local current = redis\.pcall('GET', key)|if not joined then return {'N', fence, -2, ''} end\n  local current = redis.pcall('GET', key)|
