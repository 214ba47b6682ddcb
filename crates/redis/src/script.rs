//! Scripts that Redis runs as one operation.

use redis::{Cmd, ToRedisArgs, cmd};

/// A Lua script, which is sent once, and then run by its digest.
pub struct Script {
    source: &'static str,
    digest: String,
}

impl Script {
    /// A script with this source.
    pub fn new(source: &'static str) -> Self {
        Self { source, digest: redis::Script::new(source).get_hash().to_owned() }
    }

    pub(crate) fn by_digest(&self, keys: &[String], arguments: &impl ToRedisArgs) -> Cmd {
        command("EVALSHA", &self.digest, keys, arguments)
    }

    pub(crate) fn by_source(&self, keys: &[String], arguments: &impl ToRedisArgs) -> Cmd {
        command("EVAL", self.source, keys, arguments)
    }
}

fn command(name: &str, script: &str, keys: &[String], arguments: &impl ToRedisArgs) -> Cmd {
    let mut command = cmd(name);
    command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
    command
}
