# release.lua
s/  if current ~= value and not stands_in(prior, current) then/  if not current then/
