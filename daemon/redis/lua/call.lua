-- A command. An error names its key behind what the server says: whoever is to remove a key of another type must find it.
local function call(command, key, ...)
  local got = redis.pcall(command, key, ...)
  if type(got) ~= 'table' or not got.err then return got end
  got.err = got.err .. ': ' .. key
  error(redis.REDIS_VERSION_NUM and got or got.err, 0) -- before 7.0 an error is a text
end
