# extend.lua
s|and not stands_in(prior, current) then|and not stands_in(prior, current) and prior == '' then|
