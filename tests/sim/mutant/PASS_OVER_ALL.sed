# queue.lua
s/    if ticket == '' or older < ticket then/    if older == line.head and (ticket == '' or older < ticket) then/
