# queue.lua
s|ends > now_ms + NOTE_MS|ends > now_ms + 1e13|
