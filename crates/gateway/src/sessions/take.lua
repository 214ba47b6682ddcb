-- Takes a record for the one whose name is in ARGV. Answers with 1 if it is theirs now, or was before.
local taken = 'taken by '
local record = redis.call('GET', KEYS[1])
if not record then return 0 end
if string.sub(record, 1, #taken) == taken then return record == taken .. ARGV[1] and 1 or 0 end
redis.call('SET', KEYS[1], taken .. ARGV[1], 'KEEPTTL')
return 1
