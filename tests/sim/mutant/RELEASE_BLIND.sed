# release.lua
s/  if current ~= value then/  if not current then/
