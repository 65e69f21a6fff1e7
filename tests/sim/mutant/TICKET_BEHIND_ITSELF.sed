# queue.lua
s|older < ticket then|older <= ticket then|
