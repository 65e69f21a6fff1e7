# extend.lua
/if not joined then return/d
