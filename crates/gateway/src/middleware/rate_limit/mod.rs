//! How often tools may be called: token buckets in Redis, which all proxies of a server share, or in memory where there is
//! one proxy.
//!
//! All buckets of a call are checked at once, in Redis by one script and with its clock: a call takes a token from each of
//! them, or from none. Keys and fields are those of ToolHive's proxy, so that both count together while one replaces the
//! other.

mod memory;

use std::{
    borrow::Cow,
    collections::HashMap,
    time::{Duration, Instant},
};

use skep_config::{
    run_config::{self, RateLimitBucket, ToolRateLimit},
    sha256,
};
use skep_mcp::{Method, Rejection};
use skep_redis::{Redis, RedisUnavailable, Script};
use uuid::Uuid;

use self::memory::Memory;
use crate::{
    ConfigError,
    http::ErrorResponse,
    limits,
    message::{Checked, Decision, Exchange, RateLimited, Scope},
    session_redis,
};

const FIELD: &str = "ratelimit";
const REDIS_FIELD: &str = "ratelimit.redis_addr";
const TAKE: &str = include_str!("take.lua");
/// The prefix of a digest in a key.
const DIGEST: &str = "sha256:";

/// The limits of a server.
pub(crate) struct RateLimit {
    counts: Counts,
    buckets: Buckets,
    about: RateLimited,
}

/// Where calls are counted.
enum Counts {
    Redis { redis: Box<Redis>, take: Script },
    Memory(Memory),
}

struct Buckets {
    prefix: String,
    all: Limits,
    tools: HashMap<String, Limits>,
}

/// Limits for all callers together, and for each.
#[derive(Default)]
struct Limits {
    shared: Option<Limit>,
    per_user: Option<Limit>,
}

/// The buckets of a call: their keys, how much they hold, and what each limits.
#[derive(Default)]
struct Applying {
    keys: Vec<String>,
    limits: Vec<Limit>,
    scopes: Vec<Scope>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    tokens: u32,
    period: Duration,
}

impl RateLimit {
    pub(super) fn new(parameters: &run_config::RateLimit) -> Result<Self, ConfigError> {
        let counts = if parameters.redis_addr == run_config::RateLimit::IN_MEMORY {
            Counts::Memory(Memory::default())
        } else {
            let place = session_redis::place(REDIS_FIELD, &parameters.redis_addr)?;
            let redis = session_redis::redis(REDIS_FIELD, place, parameters.redis_db)?;
            Counts::Redis { redis: Box::new(redis), take: Script::new(TAKE) }
        };
        let about =
            RateLimited { namespace: parameters.namespace.clone(), server: parameters.server_name.clone() };
        Ok(Self { buckets: Buckets::new(parameters)?, counts, about })
    }

    pub(super) async fn check(&self) -> Result<(), ConfigError> {
        match &self.counts {
            Counts::Redis { redis, .. } => session_redis::check(redis).await,
            Counts::Memory(_) => Ok(()),
        }
    }

    pub(super) async fn request(&self, exchange: &Exchange) -> Result<(), ErrorResponse> {
        let Some(call) = exchange.message.as_ref().filter(|call| call.method == Some(Method::ToolsCall))
        else {
            return Ok(());
        };
        let user = exchange.caller.identity.as_ref().map(|identity| identity.subject.as_str());
        let applying = self.buckets.of(call.target.as_deref(), user);
        if applying.keys.is_empty() {
            return Ok(());
        }
        let start = Instant::now();
        // In a box, so that requests without limits do not carry its size around.
        let taken = Box::pin(self.take(&applying)).await;
        if let Some(metrics) = &exchange.metrics {
            metrics.rate_limited(&self.about, &applying.result(&taken), start.elapsed());
        }
        match taken {
            // Without Redis, requests are allowed: an unlimited service is better than none.
            Ok(None) | Err(RedisUnavailable(_)) => Ok(()),
            Ok(Some(empty)) => {
                let retry_after_seconds =
                    applying.limits.get(empty).map_or(1, |limit| limit.retry_after_seconds());
                Err(exchange.reject(&Rejection::RateLimited { retry_after_seconds }))
            }
        }
    }

    /// Takes a token from each bucket, or returns the first bucket that has none.
    async fn take(
        &self,
        Applying { keys, limits, .. }: &Applying,
    ) -> Result<Option<usize>, RedisUnavailable> {
        let (redis, take) = match &self.counts {
            Counts::Redis { redis, take } => (redis, take),
            Counts::Memory(memory) => return Ok(memory.take(keys, limits, Instant::now())),
        };
        let mut arguments: Vec<u64> =
            limits.iter().flat_map(|limit| [limit.tokens.into(), limit.microseconds()]).collect();
        arguments.push(crate::limits::COUNTED_CALL);
        let call = [format!("{}call:{}", self.buckets.prefix, Uuid::new_v4())];
        let empty: usize = redis.run(take, &[keys, &call[..]].concat(), &arguments).await?;
        Ok(empty.checked_sub(1).filter(|index| *index < limits.len()))
    }
}

impl Applying {
    /// The result of the check, for metrics.
    fn result(&self, taken: &Result<Option<usize>, RedisUnavailable>) -> Checked<'_> {
        match taken {
            Ok(None) => Checked::Decided(Decision::Allowed, &self.scopes),
            Ok(Some(empty)) => {
                let first = self.scopes.get(*empty..=*empty);
                Checked::Decided(Decision::Rejected, first.unwrap_or_default())
            }
            Err(RedisUnavailable(cause)) => Checked::Unknown(*cause),
        }
    }
}

impl Buckets {
    fn new(parameters: &run_config::RateLimit) -> Result<Self, ConfigError> {
        let config = &parameters.config;
        let limits = |field: &str, shared: &Option<RateLimitBucket>, per_user: &Option<RateLimitBucket>| {
            Ok(Limits {
                shared: limit(&format!("{field}shared"), shared.as_ref())?,
                per_user: limit(&format!("{field}perUser"), per_user.as_ref())?,
            })
        };
        let all = limits("", &config.shared, &config.per_user)?;
        let mut tools = HashMap::new();
        for ToolRateLimit { name, shared, per_user } in &config.tools {
            let field = format!("tools[{name:?}].");
            if tools.insert(name.clone(), limits(&field, shared, per_user)?).is_some() {
                return Err(wrong(&format!("tools: {name:?} is duplicated")));
            }
        }
        if !all.limits_any() && !tools.values().any(Limits::limits_any) {
            return Err(ConfigError::new(format!(
                "{FIELD}.config: there is no bucket: set shared, perUser or those of tools"
            )));
        }
        let (namespace, server) = (part(&parameters.namespace), part(&parameters.server_name));
        Ok(Self { prefix: format!("thv:rl:{{{namespace}:{server}}}:"), all, tools })
    }

    /// The buckets of a call. An anonymous caller has none for itself.
    fn of(&self, tool: Option<&str>, user: Option<&str>) -> Applying {
        let user = user.filter(|user| !user.is_empty()).map(last);
        let named = tool.and_then(|tool| Some((part(tool), self.tools.get(tool)?)));
        let prefix = &self.prefix;
        let buckets = [
            self.all.shared.map(|limit| (Scope::Shared, format!("{prefix}shared"), limit)),
            named.as_ref().and_then(|(tool, limits)| {
                limits.shared.map(|limit| (Scope::SharedTool, format!("{prefix}shared:tool:{tool}"), limit))
            }),
            self.all
                .per_user
                .zip(user.as_ref())
                .map(|(limit, user)| (Scope::PerUser, format!("{prefix}user:{user}"), limit)),
            named.as_ref().and_then(|(tool, limits)| {
                let (limit, user) = limits.per_user.zip(user.as_ref())?;
                Some((Scope::PerUserTool, format!("{prefix}user-tool:{tool}:{user}"), limit))
            }),
        ];
        let mut applying = Applying::default();
        for (scope, key, limit) in buckets.into_iter().flatten() {
            applying.scopes.push(scope);
            applying.keys.push(key);
            applying.limits.push(limit);
        }
        applying
    }
}

impl Limits {
    fn limits_any(&self) -> bool {
        self.shared.is_some() || self.per_user.is_some()
    }
}

impl Limit {
    fn microseconds(self) -> u64 {
        u64::try_from(self.period.as_micros()).unwrap_or(u64::MAX)
    }

    /// How long it takes until there is one more token.
    fn retry_after_seconds(self) -> u64 {
        self.microseconds().div_ceil(u64::from(self.tokens) * 1_000_000).max(1)
    }
}

fn limit(field: &str, bucket: Option<&RateLimitBucket>) -> Result<Option<Limit>, ConfigError> {
    let Some(bucket) = bucket else { return Ok(None) };
    if bucket.max_tokens == 0 {
        return Err(wrong(&format!("{field}.maxTokens: must be 1 or more")));
    }
    if bucket.refill_period < Duration::from_millis(1) {
        return Err(wrong(&format!("{field}.refillPeriod: must be a millisecond or more")));
    }
    Ok(Some(Limit { tokens: bucket.max_tokens, period: bucket.refill_period }))
}

fn wrong(what: &str) -> ConfigError {
    ConfigError::new(format!("{FIELD}.config.{what}"))
}

/// A name within a key. What separates names, and what Redis Cluster parses, cannot be part of one.
fn part(name: &str) -> Cow<'_, str> {
    const SEPARATORS: [char; 4] = ['%', ':', '{', '}'];
    if !name.contains(SEPARATORS) {
        return last(name);
    }
    let escaped = SEPARATORS.iter().fold(name.to_owned(), |name, separator| {
        name.replace(*separator, &format!("%{:02X}", u32::from(*separator)))
    });
    Cow::Owned(last(&escaped).into_owned())
}

/// A name at the end of a key, where nothing can be mistaken for a part of it. A long one is known by its digest, and so is
/// one that looks like a digest.
fn last(name: &str) -> Cow<'_, str> {
    if name.len() <= limits::REDIS_NAME && !name.starts_with(DIGEST) {
        return name.into();
    }
    format!("{DIGEST}{}", sha256(name)).into()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::{Value, json};

    use super::*;

    fn buckets(config: Value) -> Result<Buckets, String> {
        let parameters = json!({"namespace": "ns", "server_name": "files", "config": config});
        Buckets::new(&serde_json::from_value(parameters).unwrap()).map_err(|error| error.to_string())
    }

    fn every() -> Buckets {
        let bucket = |tokens: u32| json!({"maxTokens": tokens, "refillPeriod": "1m"});
        let tool = |name: &str| json!({"name": name, "shared": bucket(3), "perUser": bucket(4)});
        let tools = [tool("read"), tool("a"), tool("a:b"), tool("a%3Ab")];
        buckets(json!({"shared": bucket(1), "perUser": bucket(2), "tools": tools})).unwrap()
    }

    #[test]
    fn keys_are_those_of_toolhive() {
        let Applying { keys, limits, scopes } =
            every().of(Some("read"), Some("system:serviceaccount:ns:ann"));
        let expected = [
            "thv:rl:{ns:files}:shared",
            "thv:rl:{ns:files}:shared:tool:read",
            "thv:rl:{ns:files}:user:system:serviceaccount:ns:ann",
            "thv:rl:{ns:files}:user-tool:read:system:serviceaccount:ns:ann",
        ];
        assert_eq!(keys, expected);
        assert_eq!(limits.iter().map(|limit| limit.tokens).collect::<Vec<_>>(), [1, 3, 2, 4]);
        assert_eq!(scopes, [Scope::Shared, Scope::SharedTool, Scope::PerUser, Scope::PerUserTool]);
    }

    #[test]
    fn who_has_no_name_has_no_bucket_of_their_own() {
        for user in [None, Some("")] {
            let keys = every().of(Some("read"), user).keys;
            assert_eq!(keys, ["thv:rl:{ns:files}:shared", "thv:rl:{ns:files}:shared:tool:read"]);
        }
        assert_eq!(every().of(Some("other"), None).keys, ["thv:rl:{ns:files}:shared"]);
        assert_eq!(every().of(None, None).keys, ["thv:rl:{ns:files}:shared"]);
    }

    #[test]
    fn no_two_callers_share_a_key_and_none_is_long() {
        let long = "x".repeat(limits::REDIS_NAME + 1);
        let digest = format!("sha256:{}", sha256(&long));
        let users = ["b:c", "c", "b", "B", "%3Ac", "{x}", "shared", "tool:a", " ", &long, &digest];
        let mut seen = HashSet::new();
        for tool in ["a", "a:b", "a%3Ab"] {
            for user in users {
                let key = every().of(Some(tool), Some(user)).keys.pop().unwrap();
                assert!(key.len() < 1024, "{key}");
                assert!(seen.insert(key), "{tool} {user}");
            }
        }
        for user in users {
            assert!(seen.insert(every().of(None, Some(user)).keys.pop().unwrap()), "{user}");
        }
    }

    #[test]
    fn what_limits_nothing_or_everything_is_an_error_that_names_the_field() {
        let bucket = |tokens: u32, period: &str| json!({"maxTokens": tokens, "refillPeriod": period});
        let twice = json!({"name": "t", "shared": bucket(1, "1s")});
        for (config, field) in [
            (json!({}), "ratelimit.config: there is no bucket"),
            (json!({"tools": [{"name": "t"}]}), "ratelimit.config: there is no bucket"),
            (json!({"shared": bucket(0, "1s")}), "ratelimit.config.shared.maxTokens: "),
            (json!({"perUser": bucket(1, "0s")}), "ratelimit.config.perUser.refillPeriod: "),
            (
                json!({"tools": [{"name": "t", "perUser": bucket(0, "1s")}]}),
                "ratelimit.config.tools[\"t\"].perUser.maxTokens: ",
            ),
            (json!({"tools": [twice, twice]}), "ratelimit.config.tools: "),
        ] {
            let error = buckets(config).err().unwrap();
            assert!(error.starts_with(field), "{error}");
        }
    }

    #[test]
    fn retry_after_is_the_time_until_the_next_token() {
        let after = |tokens, period| Limit { tokens, period }.retry_after_seconds();
        assert_eq!(after(10, Duration::from_secs(60)), 6);
        assert_eq!(after(7, Duration::from_secs(60)), 9);
        assert_eq!(after(100, Duration::from_secs(1)), 1);
        assert_eq!(after(1, Duration::from_millis(1500)), 2);
    }
}
