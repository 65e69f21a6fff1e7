# extend.lua
s|elseif how ~= '2' or current == new_value then|elseif how ~= '2' then|
