# extend.lua
s|if floor > fence then|if floor > fence and code == 'E' then|
