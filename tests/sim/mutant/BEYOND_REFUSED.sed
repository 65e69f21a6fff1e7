# extend.lua
s|if floor > limit_us and beyond == '0' then return|if floor > limit_us then return|
