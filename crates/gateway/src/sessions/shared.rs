//! Sessions in Redis, where all proxies of a server see them.
//!
//! Keys and records are those of ToolHive's proxy, so that clients keep their sessions while one is replaced by the other. A record
//! also has the server it belongs to: proxies of different servers may share a Redis, and a caller of one
//! server must not reach a pod of another.

use std::{
    borrow::Cow,
    mem,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use skep_config::run_config::SessionRedis;
use skep_mcp::SessionId;
use skep_redis::RedisUnavailable;
use tracing::warn;

use super::{
    Kept, Memory, Session, SessionStoreError,
    records::{Records, name},
};
use crate::{ConfigError, identity::Owner};

const FIELD: &str = "scaling_config.session_redis";
const PREFIX: &str = "thv:proxy:session:";
/// The type of records of servers that speak HTTP.
const TYPE: &str = "mcp";

/// The sessions of one server.
pub struct Shared {
    records: Records,
    /// Those that this process has started, as far as limits are concerned: one caller must not fill the Redis that all share.
    started: Memory<Started>,
    /// Those that made room for others.
    evicted: Arc<Mutex<Vec<Arc<str>>>>,
    /// Which server it is.
    server: String,
}

/// A session that this process has started.
#[derive(Clone)]
struct Started {
    id: Arc<str>,
    owner: Option<Owner>,
    /// How much of it is stored.
    bytes: usize,
    evicted: Arc<Mutex<Vec<Arc<str>>>>,
}

impl Kept for Started {
    fn owner(&self) -> Option<Owner> {
        self.owner
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn shed(&mut self) {
        self.bytes = 0;
    }

    fn evict(&self) {
        self.evicted.lock().unwrap_or_else(PoisonError::into_inner).push(self.id.clone());
    }
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Record<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    type_: Cow<'a, str>,
    #[serde(borrow)]
    created_at: Cow<'a, str>,
    #[serde(borrow)]
    updated_at: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Metadata<'a> {
    /// The pod that has the session, as a URL.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    backend_url: Option<Cow<'a, str>>,
    /// The session's id at the server.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    backend_sid: Option<Cow<'a, str>>,
    /// The request that started it.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    init_body: Option<Cow<'a, str>>,
    /// The server that has it. Only skep writes it.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    skep_server: Option<Cow<'a, str>>,
    /// Who started it, by a digest. Only skep writes it.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    skep_owner: Option<Cow<'a, str>>,
}

impl Shared {
    pub(super) fn new(config: &SessionRedis, life: Duration, server: &str) -> Result<Self, ConfigError> {
        let prefix = if config.key_prefix.is_empty() { PREFIX } else { &config.key_prefix };
        let records = Records::new(FIELD, &config.address, config.db, prefix, life)?;
        let (started, evicted) = (Memory::new(life), Arc::default());
        Ok(Self { records, started, evicted, server: server.to_owned() })
    }

    pub(super) async fn check(&self) -> Result<(), ConfigError> {
        self.records.check().await
    }

    pub(super) async fn get(&self, id: &str) -> Result<Option<Session>, RedisUnavailable> {
        self.started.get(id);
        let record = self.records.get(id).await?;
        Ok(record.and_then(|record| session(&record, &self.server)))
    }

    pub(super) async fn put(
        &self,
        id: &str,
        session: Session,
        peer: IpAddr,
    ) -> Result<(), SessionStoreError> {
        let bytes = session.bytes();
        let started = Started { id: id.into(), owner: session.owner, bytes, evicted: self.evicted.clone() };
        self.started.put(id, started, peer)?;
        let evicted = mem::take(&mut *self.evicted.lock().unwrap_or_else(PoisonError::into_inner));
        if !evicted.is_empty() {
            self.records.remove_all(&evicted).await?;
        }
        let stored = self.records.put(id, &self.record(id, &self.as_stored(id, session))).await;
        if stored.is_err() {
            self.started.remove(id);
        }
        Ok(stored?)
    }

    pub(super) async fn change(&self, id: &str, session: Session) -> Result<(), RedisUnavailable> {
        self.records.change(id, &self.record(id, &self.as_stored(id, session))).await
    }

    pub(super) async fn remove(&self, id: &str) -> Result<(), RedisUnavailable> {
        self.started.remove(id);
        self.records.remove(id).await
    }

    /// Forgets sessions that have not been used here for as long as they live. Redis ends them by itself.
    pub(super) async fn expire(&self) {
        self.started.expire().await;
    }

    /// The session without what there was no room for.
    fn as_stored(&self, id: &str, mut session: Session) -> Session {
        if self.started.get(id).is_some_and(|started| started.bytes < session.bytes()) {
            session.shed();
        }
        session
    }

    fn record(&self, id: &str, session: &Session) -> Vec<u8> {
        let now = jiff::Timestamp::now().to_string();
        let initialize = session.initialize.as_deref().and_then(|body| std::str::from_utf8(body).ok());
        let record = Record {
            id: name(id),
            type_: TYPE.into(),
            created_at: now.as_str().into(),
            updated_at: now.as_str().into(),
            metadata: Some(Metadata {
                backend_url: session.pod.as_deref().map(|pod| format!("http://{pod}").into()),
                backend_sid: session.server_id.as_deref().map(Into::into),
                init_body: initialize.map(Into::into),
                skep_server: Some(self.server.as_str().into()),
                skep_owner: session.owner.map(|owner| owner.to_text().into()),
            }),
        };
        // Only strings: it cannot fail.
        serde_json::to_vec(&record).unwrap_or_default()
    }
}

/// The session of a record, if it is one of this server. A record of another program does not have its pod, so any pod
/// may get its requests, and the session is restored where it is unknown.
fn session(record: &[u8], server: &str) -> Option<Session> {
    let record: Record<'_> = match serde_json::from_slice(record) {
        Ok(record) => record,
        Err(error) => {
            warn!(line = error.line(), column = error.column(), "malformed session in Redis");
            return None;
        }
    };
    let metadata = record.metadata.unwrap_or_default();
    let ours = metadata.skep_server.is_some();
    if record.type_ != TYPE || metadata.skep_server.is_some_and(|of| of != server) {
        return None;
    }
    let owner = match metadata.skep_owner {
        // An unreadable owner is not the anonymous one.
        Some(owner) => Some(Owner::from_text(&owner)?),
        None => None,
    };
    let pod = metadata.backend_url.filter(|_| ours);
    let pod = pod.and_then(|url| url.strip_prefix("http://")?.parse::<SocketAddr>().ok());
    let server_id = metadata.backend_sid.and_then(|id| SessionId::parse(id.as_bytes()).ok());
    Some(Session {
        server_id: server_id.map(|id| id.as_str().into()),
        pod: pod.and_then(|pod| pod.to_string().try_into().ok()).map(Arc::new),
        initialize: metadata.init_body.map(|body| body.as_bytes().into()),
        owner,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shared() -> Shared {
        let config = SessionRedis { address: "127.0.0.1:1".into(), ..SessionRedis::default() };
        Shared::new(&config, Duration::from_secs(10), "files:80").unwrap()
    }

    fn whole() -> Session {
        Session {
            server_id: Some("two".into()),
            pod: Some(Arc::new("10.0.0.1:80".parse().unwrap())),
            initialize: Some((*br#"{"method":"initialize","x":"\u00fc \" ]"}"#).into()),
            owner: Some(Owner::ANONYMOUS),
        }
    }

    #[test]
    fn a_session_survives_being_written_and_read() {
        let nothing = Session { server_id: None, pod: None, initialize: None, owner: None };
        for kept in [whole(), nothing] {
            assert_eq!(session(&shared().record("one", &kept), "files:80"), Some(kept));
        }
    }

    #[test]
    fn a_session_of_another_server_is_none() {
        assert_eq!(session(&shared().record("one", &whole()), "others:80"), None);
    }

    #[test]
    fn records_are_those_of_toolhive() {
        let id = "0b0ef4f6-2c5e-4f0f-9f3b-9d2f2e3f5a10";
        let mut record: Value = serde_json::from_slice(&shared().record(id, &whole())).unwrap();
        for time in ["created_at", "updated_at"] {
            let written = record[time].take();
            assert!(written.as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{written}");
        }
        let metadata = json!({
            "backend_url": "http://10.0.0.1:80", "backend_sid": "two", "skep_server": "files:80",
            "init_body": r#"{"method":"initialize","x":"\u00fc \" ]"}"#,
            "skep_owner": "00000000000000000000000000000000",
        });
        let expected =
            json!({"id": id, "type": "mcp", "created_at": null, "updated_at": null, "metadata": metadata});
        assert_eq!(record, expected);
    }

    #[test]
    fn a_record_of_another_program_is_read_except_for_its_address() {
        let theirs = |type_: &str, metadata: Value| {
            let now = "2026-11-15T08:13:00.123456789+01:00";
            let record = json!({"id": "i", "type": type_, "created_at": now, "updated_at": now, "data": {},
                "metadata": metadata});
            session(record.to_string().as_bytes(), "files:80")
        };
        let metadata = json!({"backend_url": "http://10.0.0.9:80", "backend_sid": "b", "init_body": "{}"});
        let initialize = Some((*b"{}").into());
        let expected = Session { server_id: Some("b".into()), pod: None, initialize, owner: None };
        assert_eq!(theirs("mcp", metadata.clone()), Some(expected));
        assert_eq!(theirs("streamable", metadata), None);
        assert!(theirs("mcp", Value::Null).is_some());
        let url = json!({"backend_url": "http://evil.example:80", "skep_server": "files:80"});
        assert_eq!(theirs("mcp", url).unwrap().pod, None, "a pod has an address and no name");
        let unreadable = json!({"skep_owner": "who", "skep_server": "files:80"});
        assert_eq!(theirs("mcp", unreadable), None);
        assert_eq!(session(b"{", "files:80"), None);
    }

    #[test]
    fn every_id_has_one_key_and_none_reaches_another_prefix() {
        let id = "0b0ef4f6-2c5e-4f0f-9f3b-9d2f2e3f5a10";
        assert_eq!(shared().records.key(id), format!("thv:proxy:session:{id}"));
        // Python: uuid.uuid5(uuid.NAMESPACE_DNS, "one").
        assert_eq!(shared().records.key("one"), "thv:proxy:session:6005052a-3a34-59e3-815f-5cebba3097eb");
        assert_ne!(shared().records.key("../x"), shared().records.key("*"));
        assert_eq!(shared().records.key(&"x".repeat(1024)).len(), "thv:proxy:session:".len() + 36);
    }

    #[test]
    fn a_prefix_that_does_not_end_is_an_error() {
        let config = SessionRedis { key_prefix: "mine".into(), address: "r:1".into(), db: 0 };
        let error = Shared::new(&config, Duration::from_secs(1), "").err().unwrap().to_string();
        assert!(error.starts_with("scaling_config.session_redis.key_prefix: "), "{error}");
    }
}
