# extend.lua
s|if floor > limit_us then return|if false then return|
