# mark.lua
s/  if not (fence and fence >= floor and fence <= 9007199254740992) then/  if false then/
