# queue.lua
s|if redis\.pcall('EXISTS', key) == 0 then wake_head(key, queue_line(queue)) end||
