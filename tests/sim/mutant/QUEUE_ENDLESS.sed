# queue.lua
s|redis\.pcall('PEXPIRE', queue, 3 \* ticket_ms)||
