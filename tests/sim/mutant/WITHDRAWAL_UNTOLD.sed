# queue.lua
s|^    wake_head(key, line)$||
