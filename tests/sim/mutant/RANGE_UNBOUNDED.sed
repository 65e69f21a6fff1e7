# acquire.lua
s/  if range > 0 and base + range > limit then/  if false then/
