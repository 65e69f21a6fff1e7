# queue.lua
s/  if line and line.head then tell/  if false then tell/
