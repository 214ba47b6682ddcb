-- Takes one token from each bucket, or from none. Answers with the number of the first that is empty, or with 0.
-- KEYS are the buckets, and one for the call itself: if the reply is lost, the call is counted again, and takes nothing.
-- ARGV has, for each bucket, how many tokens it holds and in how many microseconds it fills up, and then for how many milliseconds
-- the call may be counted again.
local call, life = table.remove(KEYS), table.remove(ARGV)
if redis.call('EXISTS', call) == 1 then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local left, empty = {}, 0
for i, key in ipairs(KEYS) do
  local most, period = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local bucket = redis.call('HMGET', key, 'tokens', 'last_refill')
  local tokens, last = tonumber(bucket[1]), tonumber(bucket[2])
  if tokens and last then
    -- A clock that was set back gives nothing, and takes nothing.
    tokens = math.min(most, tokens + math.max(0, now - last) * most / period)
  else
    tokens = most
  end
  left[i] = tokens
  if tokens < 1 and empty == 0 then empty = i end
end
local taken = empty == 0 and 1 or 0
for i, key in ipairs(KEYS) do
  local tokens, last = string.format('%.17g', left[i] - taken), string.format('%.0f', now)
  redis.call('HSET', key, 'tokens', tokens, 'last_refill', last)
  -- Full again long before.
  redis.call('PEXPIRE', key, string.format('%.0f', math.ceil(ARGV[2 * i] / 500)))
end
if taken == 1 then redis.call('SET', call, '', 'PX', life) end
return empty
