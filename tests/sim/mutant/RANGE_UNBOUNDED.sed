# acquire.lua
s/  if range > 0 and base + range > limit_us then/  if false then/
