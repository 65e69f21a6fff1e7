# extend.lua
s/^    return occupied(key, current)/    if floor > fence then redis.call('SET', KEYS[2], digits(floor)) fence = floor return {'E', fence, px, ''} end\n    return occupied(key, current)/
