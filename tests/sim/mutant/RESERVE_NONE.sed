# queue.lua
s/      kept = kept or not since or now_ms - since < reserve_ms/      kept = false/
