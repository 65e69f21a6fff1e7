# extend.lua
s|if floor > limit_us and beyond == '0' then return|if false then return|
