# mark.lua
s/^if not_after > 0 and .*$//
