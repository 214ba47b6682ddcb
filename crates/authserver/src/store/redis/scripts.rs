//! Operations on several keys, which Redis runs as one. All keys of a server have the same hash tag, so that a cluster has
//! them on one node.

use std::time::Duration;

use redis::{Cmd, cmd};

use crate::limits;

/// What [`rotate`] returns when it is done.
pub(super) const DONE: i64 = -1;
/// What it returns if the session has ended.
pub(super) const ENDED: i64 = -2;

const PUT_UNLESS_ENDED: &str = "
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return 1";

const ROTATE: &str = "
if redis.call('EXISTS', KEYS[3]) == 1 then return -2 end
local at = redis.call('GET', KEYS[1])
if at then return tonumber(at) end
redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[2])
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[2])
return -1";

/// The keys of the logins of an address are in a list, the newest first. Logins that are over stay in it: an old one that
/// is still there began before all of these.
const PUT_LOGIN: &str = "
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
redis.call('LPUSH', KEYS[2], KEYS[1])
redis.call('EXPIRE', KEYS[2], ARGV[2])
while redis.call('LLEN', KEYS[2]) > tonumber(ARGV[3]) do
  redis.call('DEL', redis.call('RPOP', KEYS[2]))
end
return 1";

/// Stores a login in the list of its address, where the oldest ends if there are too many.
pub(super) fn put_login(keys: &[String; 2], row: &str, life: Duration) -> Cmd {
    let mut command = cmd("EVAL");
    command
        .arg(PUT_LOGIN)
        .arg(keys.len())
        .arg(keys)
        .arg(row)
        .arg(life.as_secs())
        .arg(limits::LOGINS_IN_REDIS);
    command
}

/// Stores a row, unless the session has ended.
pub(super) fn put_unless_ended(keys: &[String; 2], row: &str, life: Duration) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(PUT_UNLESS_ENDED).arg(keys.len()).arg(keys).arg(row).arg(life.as_secs());
    command
}

/// Marks a token as replaced, and stores the next one. Only the first request does so; others get the time of that.
pub(super) fn rotate(keys: &[String; 3], row: &str, life: Duration, now: u64) -> Cmd {
    let mut command = cmd("EVAL");
    command.arg(ROTATE).arg(keys.len()).arg(keys).arg(row).arg(life.as_secs()).arg(now);
    command
}
