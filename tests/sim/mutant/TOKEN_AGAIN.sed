# acquire.lua
s|local base = fence + 1|local base = fence|
