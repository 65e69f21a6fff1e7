# extend.lua
s|if not joined then return {'Q', fence, -2, marker} end|if not joined and how ~= '1' then return {'Q', fence, -2, marker} end|
