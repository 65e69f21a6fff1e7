# mark.lua
s|local floor = math.max(now_us + tonumber(ARGV\[3\]), tonumber(ARGV\[4\]))|local floor = now_us|
