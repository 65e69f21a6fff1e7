# queue.lua
s|redis\.pcall('ZREM', queue, ticket, '~' \.\. ticket)|redis.pcall('ZREM', queue, ticket)|
