//! Operations on several keys, which Redis runs as one. All keys of a server have the same hash tag, so that a cluster has
//! them on one node.

use std::time::Duration;

use skep_redis::{Cmd, cmd};

use crate::limits;

/// What [`rotate`] returns.
pub(super) const STOLEN: i64 = 0;
pub(super) const DONE: i64 = 1;

/// The sessions of all users are in a set, ordered by when they expire.
const GO_ON: &str = "
local function go_on(set, session, now, life)
  redis.call('ZREMRANGEBYSCORE', set, '-inf', now)
  local known = tonumber(redis.call('ZSCORE', set, session) or 0)
  redis.call('ZADD', set, math.max(known, now + life), session)
  redis.call('ZREMRANGEBYRANK', set, 0, -1 - MOST)
  local last = redis.call('ZRANGE', set, -1, -1, 'WITHSCORES')
  redis.call('EXPIREAT', set, last[2])
end";

const PUT_REFRESH: &str = "
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
local known = redis.call('HGET', KEYS[1], 'current')
if known then return known == ARGV[3] and 1 or 0 end
redis.call('HSET', KEYS[1], 'grant', ARGV[1], 'current', ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[2])
go_on(KEYS[3], ARGV[5], tonumber(ARGV[4]), tonumber(ARGV[2]))
return 1";

/// Times are those of Redis: replicas of the server may have others.
const ROTATE: &str = "
if redis.call('EXISTS', KEYS[2]) == 1 then return 2 end
local row = redis.call('HMGET', KEYS[1], 'current', 'previous', 'at')
if not row[1] then return 2 end
if row[1] ~= ARGV[3] then
  if row[2] ~= ARGV[3] then return 0 end
  if row[3] then
    if tonumber(redis.call('TIME')[1]) > tonumber(row[3]) + tonumber(ARGV[5]) then return 0 end
    return 2
  end
end
redis.call('HSET', KEYS[1], 'grant', ARGV[1], 'current', ARGV[4], 'previous', ARGV[3])
redis.call('HDEL', KEYS[1], 'at')
redis.call('EXPIRE', KEYS[1], ARGV[2])
go_on(KEYS[3], ARGV[7], tonumber(ARGV[6]), tonumber(ARGV[2]))
return 1";

/// The first time stays.
const DELIVER: &str = "
if redis.call('HGET', KEYS[1], 'current') == ARGV[1] then
  redis.call('HSETNX', KEYS[1], 'at', redis.call('TIME')[1])
end
return 1";

/// It has ended for as long as it has rows: these stay, for the next login of the user.
const END_SESSION: &str = "
local life = tonumber(ARGV[1])
for index = 3, #ARGV do life = math.max(life, redis.call('TTL', ARGV[index])) end
redis.call('SET', KEYS[1], '1', 'EX', life)
redis.call('DEL', KEYS[2])
redis.call('ZREM', KEYS[4], ARGV[2])
for index = 3, #ARGV do redis.call('ZREM', KEYS[3], ARGV[index]) end
return 1";

/// Rows that strangers cause. The keys of those of an address are in a set, and of all of them in another one, both ordered by when
/// they expire; a third one has the sets of addresses, ordered by how many they have. What makes room is the oldest row of the
/// address, or of the one that has most. Keys of rows that are gone may stay in the set of an address.
const PUT_SHARED: &str = "
if redis.call('EXISTS', KEYS[1]) == 1 then return 1 end
local now, life = tonumber(redis.call('TIME')[1]), tonumber(ARGV[2])
local function count(set)
  redis.call('ZREMRANGEBYSCORE', set, '-inf', now)
  local number = redis.call('ZCARD', set)
  if number == 0 then redis.call('ZREM', KEYS[4], set) else redis.call('ZADD', KEYS[4], number, set) end
  return number
end
local function evict(set)
  local oldest = redis.call('ZPOPMIN', set)[1]
  if oldest and redis.call('ZREM', KEYS[3], oldest) == 1 then redis.call('DEL', oldest) end
  return count(set)
end
while count(KEYS[2]) >= tonumber(ARGV[3]) do evict(KEYS[2]) end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
while redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[4]) do
  local most = redis.call('ZREVRANGE', KEYS[4], 0, 0)[1]
  if most then
    evict(most)
  else
    redis.call('DEL', redis.call('ZPOPMIN', KEYS[3])[1])
  end
end
redis.call('SET', KEYS[1], ARGV[1], 'EX', life)
redis.call('ZADD', KEYS[2], now + life, KEYS[1])
redis.call('ZADD', KEYS[3], now + life, KEYS[1])
count(KEYS[2])
for index = 2, 4 do redis.call('EXPIRE', KEYS[index], life) end
return 1";

/// Stores a row of an address, which has so many at most, as all of them together.
pub(super) fn put_shared(keys: &[String; 4], row: &str, life: Duration, most: [usize; 2]) -> Cmd {
    let mut command = script(PUT_SHARED, keys);
    command.arg(row).arg(life.as_secs()).arg(&most);
    command
}

/// The tokens of upstreams of a user are in a list, the newest first. Rows that have expired stay in it, as those of logins do: their
/// sessions may go on.
/// Those of all users that have tokens are in a set, ordered by when they expire, unless the session has ended.
const PUT_UPSTREAM: &str = "
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('LPUSH', KEYS[3], KEYS[1])
  while redis.call('LLEN', KEYS[3]) > tonumber(ARGV[4]) do
    local oldest = redis.call('RPOP', KEYS[3])
    redis.call('DEL', oldest)
    redis.call('ZREM', KEYS[4], oldest)
  end
end
redis.call('EXPIRE', KEYS[3], math.max(tonumber(ARGV[3]), tonumber(ARGV[9])))
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'EX', ARGV[3])
if redis.call('EXISTS', KEYS[5]) == 0 then go_on(KEYS[6], ARGV[8], tonumber(ARGV[5]), tonumber(ARGV[3])) end
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', ARGV[5])
if ARGV[6] == '1' and redis.call('EXISTS', KEYS[5]) == 0 then
  redis.call('ZADD', KEYS[4], ARGV[5] + ARGV[3], KEYS[1])
  redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -1 - ARGV[7])
else
  redis.call('ZREM', KEYS[4], KEYS[1])
end
local last = redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')
if last[2] then redis.call('EXPIREAT', KEYS[4], last[2]) end
return 1";

/// Tokens do not leave Redis here. A row that is malformed, or that Redis evicted, is left out.
const CONNECTIONS: &str = "
local after = '(' .. ARGV[1]
local shown = {}
for _, key in ipairs(redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', after, 'LIMIT', 0, ARGV[2])) do
  local is_parsed, row = pcall(cjson.decode, redis.call('GET', key) or '')
  if is_parsed and type(row) == 'table' then
    table.insert(shown, cjson.encode({
      user_id = row.user_id, provider_id = row.provider_id, upstream_subject = row.upstream_subject,
      connected_at = row.connected_at, expires_at = row.expires_at, is_renewed = (row.refresh_token or '') ~= '',
    }))
  end
end
return {redis.call('ZCOUNT', KEYS[1], after, '+inf'), shown}";

/// Clients that were used are in a set, ordered by when that was. If there are too many, the first is removed.
const RENEW_CLIENT: &str = "
if redis.call('EXPIRE', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('ZREM', KEYS[3], KEYS[1])
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[2], now, KEYS[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - tonumber(ARGV[1]))
while redis.call('ZCARD', KEYS[2]) > tonumber(ARGV[2]) do
  redis.call('DEL', redis.call('ZPOPMIN', KEYS[2])[1])
end
redis.call('EXPIRE', KEYS[2], ARGV[1])
return 1";

const REMOVE_CLIENT: &str = "
for index = 2, 3 do redis.call('ZREM', KEYS[index], KEYS[1]) end
return redis.call('DEL', KEYS[1])";

/// Removes a client, which may be in one of these sets.
pub(super) fn remove_client(keys: &[String; 3]) -> Cmd {
    script(REMOVE_CLIENT, keys)
}

/// What there is of each session: its end, its refresh tokens, and its rows.
const SESSIONS: &str = "
local found, width = {}, tonumber(ARGV[1])
for first = 1, #KEYS, width do
  local one = {}
  one[1] = redis.call('EXISTS', KEYS[first]) == 1 and '1'
  one[2] = redis.call('HGET', KEYS[first + 1], 'grant')
  for place = 3, width do one[place] = redis.call('GET', KEYS[first + place - 1]) end
  table.insert(found, one)
end
return found";

/// Looks at sessions: each has as many keys as the others, of its end and its refresh tokens first.
pub(super) fn sessions(keys: &[Vec<String>]) -> Cmd {
    let width = keys.first().map_or(1, Vec::len);
    let mut command = script(SESSIONS, &keys.concat());
    command.arg(width);
    command
}

const RENEW_LOCK: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])";

/// Has a lock last longer, unless it has become another holder's.
pub(super) fn renew_lock(keys: &[String; 1], holder: &str, life: Duration) -> Cmd {
    let mut command = script(RENEW_LOCK, keys);
    command.arg(holder).arg(life.as_millis() as u64);
    command
}

const UNLOCK: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1";

/// Releases a lock, unless it has become another holder's.
pub(super) fn unlock(keys: &[String; 1], holder: &str) -> Cmd {
    let mut command = script(UNLOCK, keys);
    command.arg(holder);
    command
}

/// A script that keeps the index of sessions.
fn indexing(text: &str, keys: &[String]) -> Cmd {
    let most = limits::CONNECTIONS_IN_REDIS.to_string();
    script(&(GO_ON.replace("MOST", &most) + text), keys)
}

fn script(text: &str, keys: &[String]) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(text).arg(keys.len()).arg(keys);
    command
}

/// Stores the first refresh token of a session, by its signature, unless the session has ended.
pub(super) fn put_refresh(
    keys: &[String; 3],
    row: &str,
    life: Duration,
    signature: &str,
    (now, session): (u64, &str),
) -> Cmd {
    let mut command = indexing(PUT_REFRESH, keys);
    command.arg(row).arg(life.as_secs()).arg(signature).arg(now).arg(session);
    command
}

/// Replaces the refresh token of a session.
pub(super) fn rotate(
    keys: &[String; 3],
    row: &str,
    life: Duration,
    (old, new): (&str, &str),
    (now, session): (u64, &str),
) -> Cmd {
    let mut command = indexing(ROTATE, keys);
    let leeway = limits::REPLACED_LEEWAY.as_secs();
    command.arg(row).arg(life.as_secs()).arg(old).arg(new).arg(leeway).arg(now).arg(session);
    command
}

/// The new refresh token of a session is on its way.
pub(super) fn deliver(key: &str, new: &str) -> Cmd {
    let mut command = script(DELIVER, &[key.to_owned()]);
    command.arg(new);
    command
}

/// Takes a row, which is kept for a while by this name for a response that gets lost.
const TAKE: &str = "
if redis.call('EXISTS', KEYS[1]) == 1 then
  for index = 3, 4 do redis.call('ZREM', KEYS[index], KEYS[1]) end
  redis.call('RENAME', KEYS[1], KEYS[2])
  redis.call('EXPIRE', KEYS[2], ARGV[1])
end
return redis.call('GET', KEYS[2])";

/// Takes a row once, out of these sets.
pub(super) fn take(keys: &[String; 4]) -> Cmd {
    let mut command = script(TAKE, keys);
    command.arg(limits::TAKEN_LIFE.as_secs());
    command
}

const PUT_BACK: &str = "
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('RENAME', KEYS[1], KEYS[2])
  redis.call('EXPIRE', KEYS[2], ARGV[1])
end
return 1";

/// Gives a row that was taken its former name.
pub(super) fn put_back(keys: &[String; 2]) -> Cmd {
    let mut command = script(PUT_BACK, keys);
    command.arg(limits::PENDING_LIFE.as_secs());
    command
}

/// Ends a session, which has these rows at upstreams.
pub(super) fn end_session(keys: &[String; 4], session: &str, rows: &[String], life: Duration) -> Cmd {
    let mut command = script(END_SESSION, keys);
    command.arg(life.as_secs()).arg(session).arg(rows);
    command
}

/// Stores the tokens of a session at an upstream, and that they are the newest of the user.
pub(super) fn put_upstream(
    keys: &[String; 6],
    row: &str,
    (session, latest): (&str, &str),
    (now, life): (u64, Duration),
    is_connected: bool,
) -> Cmd {
    let mut command = indexing(PUT_UPSTREAM, keys);
    command
        .arg(row)
        .arg(latest)
        .arg(life.as_secs().max(1))
        .arg(limits::SESSIONS_OF_A_USER)
        .arg(now)
        .arg(u8::from(is_connected))
        .arg(limits::CONNECTIONS_IN_REDIS)
        .arg(session)
        .arg(limits::USER_LIFE.as_secs());
    command
}

/// How many connections there are, and those that expire last, without their tokens.
pub(super) fn connections(key: &str, now: u64, most: usize) -> Cmd {
    let mut command = script(CONNECTIONS, &[key.to_owned()]);
    command.arg(now).arg(most);
    command
}

/// Lets a client live on.
pub(super) fn renew_client(keys: &[String; 3]) -> Cmd {
    let mut command = script(RENEW_CLIENT, keys);
    command.arg(limits::CLIENT_LIFE.as_secs()).arg(limits::CLIENTS_IN_REDIS);
    command
}
