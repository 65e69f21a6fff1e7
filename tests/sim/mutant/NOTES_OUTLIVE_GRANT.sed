# queue.lua
s|for other in pairs(line\.since) do redis\.pcall('ZREM', queue, '~' \.\. other) end||
