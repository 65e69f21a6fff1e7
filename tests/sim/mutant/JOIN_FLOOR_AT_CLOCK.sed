# join.lua
s|local floor = now_us + tonumber(ARGV\[3\])|local floor = now_us|
