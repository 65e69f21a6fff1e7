# queue.lua
s/      kept = kept or not since or now_ms - since < grace_ms/      kept = false/
