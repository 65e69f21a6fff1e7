# queue.lua
s|older < ticket then|string.sub(older, 1, 12) < string.sub(ticket, 1, 12) then|
