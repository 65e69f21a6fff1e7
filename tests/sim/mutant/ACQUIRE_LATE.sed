# acquire.lua
s|now_ms > not_after then|now_ms > not_after + 1500 then|
