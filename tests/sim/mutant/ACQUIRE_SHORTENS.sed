# acquire.lua
s|px = math\.max(px, pttl)||
