# queue.lua
s|for other in pairs(line\.since) do gone\[#gone + 1\] = '~' \.\. other end||
