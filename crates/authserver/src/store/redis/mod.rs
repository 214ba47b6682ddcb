//! The store that replicas share, and that outlives them. Its keys have the names that ToolHive gives them.

mod scripts;

use std::{net::IpAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use skep_auth::Seal;
use skep_redis::{Cmd, FromRedisValue, Redis, RedisUnavailable, cmd};
use tokio::time::{Instant, sleep};
use tracing::warn;
use uuid::Uuid;

use super::{
    Client, Connected, Grant, Page, Pending, Registration, Result, Rotation, Store, StoreError, Taken,
    Upstream, UserSession,
};
use crate::{clock::Clock, config::RedisSettings, keys::family, limits};

/// How long in between an operation is undone again, if Redis is unavailable.
const PAUSE: Duration = Duration::from_millis(100);

/// The store.
pub(crate) struct RedisStore {
    redis: Arc<Redis>,
    prefix: String,
    seal: Seal,
    clock: Clock,
}

impl RedisStore {
    pub(crate) fn new(settings: RedisSettings, clock: Clock) -> std::result::Result<Self, String> {
        let RedisSettings { connection, prefix, key } = settings;
        let redis = Redis::new(connection).map_err(|error| error.to_string())?;
        Ok(Self { redis: Arc::new(redis), prefix, seal: Seal::new(key.as_ref())?, clock })
    }

    fn key(&self, parts: &[&str]) -> String {
        format!("{}{}", self.prefix, parts.join(":"))
    }

    async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        self.redis.query(command).await.map_err(|RedisUnavailable(_)| StoreError::Unavailable)
    }

    async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let text: Option<String> = self.query(cmd("GET").arg(key)).await?;
        Ok(text.and_then(|text| parsed(&text)))
    }

    async fn put(&self, key: &str, row: &impl Serialize, life: Option<Duration>) -> Result<()> {
        let mut command = cmd("SET");
        command.arg(key).arg(text(row)?);
        if let Some(life) = life {
            command.arg("EX").arg(life.as_secs().max(1));
        }
        self.query(&command).await
    }

    /// Stores who has something, if nobody has it. `false`: another one has it.
    async fn hold(&self, key: &str, holder: &str, life: Duration) -> Result<bool> {
        let mut command = cmd("SET");
        command.arg(key).arg(holder).arg("NX").arg("GET").arg("PX").arg(life.as_millis() as u64);
        let known: Option<String> = self.query(&command).await?;
        // The same command may have been executed before, and only its response is lost.
        Ok(known.is_none_or(|known| known == holder))
    }

    /// Undoes the taking of a row whose reply was lost: its user is told to try again.
    fn put_back(&self, keys: [String; 2]) {
        let redis = self.redis.clone();
        tokio::spawn(async move {
            let until = Instant::now() + limits::TAKEN_LIFE;
            while redis.query::<()>(&scripts::put_back(&keys)).await.is_err() && Instant::now() < until {
                sleep(PAUSE).await;
            }
        });
    }

    fn doubt_key(&self, user: &str, client: &str) -> String {
        self.key(&["doubt", &user.len().to_string(), user, client])
    }

    /// The key that tells of a spent code.
    fn spent_key(&self, signature: &str) -> String {
        self.key(&["invalidated", signature])
    }

    fn provider_key(&self, provider: &str, subject: &str) -> String {
        self.key(&["provider", &provider.len().to_string(), provider, subject])
    }

    /// The keys of a row that an address causes, and of the sets that it is in.
    fn shared_keys(&self, row: String, name: &str, address: IpAddr) -> [String; 4] {
        let of_address = self.key(&[name, "at", &address.to_string()]);
        [row, of_address, self.key(&[name]), self.key(&[name, "counts"])]
    }

    /// The keys of the refresh tokens of a session, of its end, and of the index of sessions.
    fn session_keys(&self, session: &str) -> [String; 3] {
        [self.refresh_key(session), self.ended_key(session), self.key(&["sessions"])]
    }

    fn refresh_key(&self, session: &str) -> String {
        self.key(&["refresh", &family(session)])
    }

    fn ended_key(&self, session: &str) -> String {
        self.key(&["invalidated", "session", session])
    }

    fn upstream_key(&self, session: &str, provider: &str) -> String {
        self.key(&["upstream", session, provider])
    }

    fn upstream_keys(&self, session: &str, providers: &[&str]) -> Vec<String> {
        providers.iter().map(|provider| self.upstream_key(session, provider)).collect()
    }

    /// The key of the list of a user's rows at a provider.
    fn rows_key(&self, user: &str, provider: &str) -> String {
        self.key(&["user", "sessions", user, provider])
    }

    /// The session of a row at a provider, by its key.
    fn session_of<'a>(&self, key: &'a str, provider: &str) -> Option<&'a str> {
        let rest = key.strip_prefix(&*self.key(&["upstream", ""]))?;
        rest.strip_suffix(provider)?.strip_suffix(':')
    }

    /// The key of the index of connections.
    fn connections_key(&self) -> String {
        self.key(&["connections"])
    }

    /// Some members of a set, from here on.
    async fn page(&self, set: &str, from: &str, most: usize) -> Result<Page<(String, u64)>> {
        // Of a begin that is none, Redis reports an error.
        let from: u64 = from.parse().unwrap_or_default();
        let (next, members): (u64, Vec<(String, u64)>) =
            self.query(cmd("ZSCAN").arg(self.key(&[set])).arg(from).arg("COUNT").arg(most)).await?;
        Ok((members, (next != 0).then(|| next.to_string())))
    }

    /// The sessions with these ids that go on, with their rows at these providers.
    async fn with_ids(&self, ids: &[&str], providers: &[&str]) -> Result<Vec<UserSession>> {
        let of_session = |id: &&str| {
            let mut keys = vec![self.ended_key(id), self.refresh_key(id)];
            keys.extend(self.upstream_keys(id, providers));
            keys
        };
        let keys: Vec<Vec<String>> = ids.iter().map(of_session).collect();
        let found: Vec<Vec<Option<String>>> = self.query(&scripts::sessions(&keys)).await?;
        let sessions = ids.iter().zip(keys).zip(found).filter_map(|((id, keys), found)| {
            let ([ended, grant], rows) = found.split_first_chunk()?;
            let rows = keys.iter().skip(2).zip(rows).map(|(key, row)| self.row(key, row.as_ref())).collect();
            let grant = grant.as_ref().and_then(|grant| parsed(grant));
            let session = UserSession { id: (*id).to_owned(), grant, rows };
            (ended.is_none() && session.is_known()).then_some(session)
        });
        Ok(sessions.collect())
    }

    /// A row with its tokens encrypted for its place.
    fn sealed(&self, key: &str, row: &Upstream) -> Result<Upstream> {
        let seal = |value: &str| self.seal.seal(key, value).ok_or(StoreError::Unavailable);
        Ok(Upstream {
            access_token: seal(&row.access_token)?,
            refresh_token: seal(&row.refresh_token)?,
            id_token: seal(&row.id_token)?,
            ..row.clone()
        })
    }

    /// A row with its tokens. One that cannot be decrypted is as good as none: the user logs in again.
    fn opened(&self, key: &str, row: Upstream) -> Option<Upstream> {
        let open = |value: &str| self.seal.open(key, value);
        Some(Upstream {
            access_token: open(&row.access_token)?,
            refresh_token: open(&row.refresh_token)?,
            id_token: open(&row.id_token)?,
            ..row
        })
    }

    /// The row that Redis has at a key.
    fn row(&self, key: &str, text: Option<&String>) -> Option<Upstream> {
        self.opened(key, parsed(text?)?)
    }
}

/// A row that another version wrote differently is as good as none.
fn parsed<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).inspect_err(|_| warn!("a row in Redis is malformed")).ok()
}

fn text(row: &impl Serialize) -> Result<String> {
    serde_json::to_string(row).map_err(|_| StoreError::Unavailable)
}

#[async_trait]
impl Store for RedisStore {
    async fn check(&self) -> std::result::Result<(), String> {
        self.redis.check().await.map_err(|error| error.to_string())
    }

    async fn put_client(&self, client: &Client, address: IpAddr) -> Result<()> {
        let keys = self.shared_keys(self.key(&["client", &client.id]), "clients:new", address);
        let most = [limits::NEW_CLIENTS_OF_AN_ADDRESS, limits::NEW_CLIENTS];
        self.query(&scripts::put_shared(&keys, &text(client)?, limits::NEW_CLIENT_LIFE, most)).await
    }

    async fn client(&self, id: &str) -> Result<Option<Client>> {
        self.get(&self.key(&["client", id])).await
    }

    async fn used_clients(&self, from: &str, most: usize) -> Result<Page<Client>> {
        let (members, next) = self.page("clients", from, most).await?;
        let keys: Vec<String> = members.into_iter().map(|(key, _)| key).collect();
        if keys.is_empty() {
            return Ok((Vec::new(), next));
        }
        let rows: Vec<Option<String>> = self.query(cmd("MGET").arg(keys)).await?;
        Ok((rows.iter().flatten().filter_map(|row| parsed(row)).collect(), next))
    }

    async fn remove_client(&self, id: &str) -> Result<bool> {
        let keys = [self.key(&["client", id]), self.key(&["clients"]), self.key(&["clients:new"])];
        Ok(self.query::<i64>(&scripts::remove_client(&keys)).await? == 1)
    }

    async fn renew_client(&self, id: &str) -> Result<()> {
        let keys = [self.key(&["client", id]), self.key(&["clients"]), self.key(&["clients:new"])];
        self.query(&scripts::renew_client(&keys)).await
    }

    async fn put_pending(&self, state: &str, pending: &Pending, address: IpAddr) -> Result<()> {
        let keys = self.shared_keys(self.key(&["pending", state]), "logins", address);
        let most = [limits::LOGINS_OF_AN_ADDRESS_IN_REDIS, limits::LOGINS_IN_REDIS];
        self.query(&scripts::put_shared(&keys, &text(pending)?, limits::PENDING_LIFE, most)).await
    }

    async fn take_pending(&self, state: &str, address: IpAddr) -> Result<Option<Pending>> {
        let [row, of_address, all, _] = self.shared_keys(self.key(&["pending", state]), "logins", address);
        let taken = self.key(&["pending", "taken", &Uuid::new_v4().to_string()]);
        let command = scripts::take(&[row.clone(), taken.clone(), of_address, all]);
        match self.query::<Option<String>>(&command).await {
            Ok(text) => Ok(text.and_then(|text| parsed(&text))),
            Err(error) => {
                self.put_back([taken, row]);
                Err(error)
            }
        }
    }

    async fn put_code(&self, signature: &str, grant: &Grant, life: Duration) -> Result<()> {
        self.put(&self.key(&["authcode", signature]), grant, Some(life + limits::SPENT_LIFE)).await
    }

    async fn code(&self, signature: &str) -> Result<Option<(Grant, Taken)>> {
        let mut command = cmd("MGET");
        command.arg(self.key(&["authcode", signature])).arg(self.spent_key(signature));
        let (grant, spent): (Option<String>, Option<String>) = self.query(&command).await?;
        let taken = if spent.is_some() { Taken::Spent } else { Taken::Free };
        Ok(grant.and_then(|text| parsed(&text)).map(|grant| (grant, taken)))
    }

    async fn spend_code(&self, signature: &str) -> Result<()> {
        let mut command = cmd("SET");
        command.arg(self.spent_key(signature)).arg("1").arg("EX").arg(limits::SPENT_LIFE.as_secs());
        self.query(&command).await
    }

    async fn put_refresh(&self, signature: &str, grant: &Grant, life: Duration) -> Result<bool> {
        let keys = self.session_keys(&grant.session.id);
        let index = (self.clock.now(), &*grant.session.id);
        let command = scripts::put_refresh(&keys, &text(grant)?, life, signature, index);
        Ok(self.query::<i64>(&command).await? == 1)
    }

    async fn refresh(&self, family: &str) -> Result<Option<Grant>> {
        let key = self.key(&["refresh", family]);
        let text: Option<String> = self.query(cmd("HGET").arg(key).arg("grant")).await?;
        Ok(text.and_then(|text| parsed(&text)))
    }

    async fn rotate(&self, old: &str, new: &str, grant: &Grant, life: Duration) -> Result<Rotation> {
        let keys = self.session_keys(&grant.session.id);
        let index = (self.clock.now(), &*grant.session.id);
        let command = scripts::rotate(&keys, &text(grant)?, life, (old, new), index);
        Ok(match self.query::<i64>(&command).await? {
            scripts::DONE => Rotation::Done,
            scripts::STOLEN => Rotation::Stolen,
            _ => Rotation::Refused,
        })
    }

    async fn deliver(&self, new: &str, session: &str) -> Result<()> {
        self.query(&scripts::deliver(&self.refresh_key(session), new)).await
    }

    async fn end_session(&self, session: &str, providers: &[&str], life: Duration) -> Result<()> {
        let [refresh, ended, all] = self.session_keys(session);
        let rows = self.upstream_keys(session, providers);
        let keys = [ended, refresh, self.connections_key(), all];
        self.query(&scripts::end_session(&keys, session, &rows, life)).await
    }

    async fn is_ended(&self, session: &str) -> Result<bool> {
        self.query(cmd("EXISTS").arg(self.ended_key(session))).await
    }

    async fn doubt(&self, user: &str, client: &str, is_in_doubt: bool) -> Result<()> {
        let key = self.doubt_key(user, client);
        match is_in_doubt {
            true => {
                self.query(cmd("SET").arg(key).arg("1").arg("EX").arg(limits::BROWSER_LIFE.as_secs())).await
            }
            false => self.query(cmd("DEL").arg(key)).await,
        }
    }

    async fn is_in_doubt(&self, user: &str, client: &str) -> Result<bool> {
        self.query(cmd("EXISTS").arg(self.doubt_key(user, client))).await
    }

    async fn forget_approvals(&self, client: &str, mark: &str) -> Result<()> {
        let mut command = cmd("SET");
        command.arg(self.key(&["approvals", client])).arg(mark).arg("EX").arg(limits::BROWSER_LIFE.as_secs());
        self.query(&command).await
    }

    async fn approvals_mark(&self, client: &str) -> Result<String> {
        let mark: Option<String> = self.query(cmd("GET").arg(self.key(&["approvals", client]))).await?;
        Ok(mark.unwrap_or_default())
    }

    async fn spend(&self, key: &str, life: Duration) -> Result<bool> {
        let user = Uuid::new_v4().to_string();
        self.hold(&self.key(&[key]), &user, Duration::from_secs(life.as_secs() + 1)).await
    }

    async fn user(&self, provider: &str, subject: &str, new: &str, now: u64) -> Result<String> {
        let link = json!({
            "user_id": new, "provider_id": provider, "provider_subject": subject, "linked_at": now,
            "last_used_at": now,
        });
        let mut command = cmd("SET");
        command.arg(self.provider_key(provider, subject)).arg(link.to_string()).arg("NX").arg("GET");
        let known: Option<String> = self.query(&command).await?;
        if let Some(known) = known {
            let user = parsed::<serde_json::Value>(&known)
                .and_then(|link| link["user_id"].as_str().map(str::to_owned));
            let user = user.ok_or(StoreError::Unavailable)?;
            // The response to the same command may have been lost, and with it that the user is new.
            if user != new {
                return Ok(user);
            }
        }
        let user = json!({"id": new, "created_at": now, "updated_at": now});
        self.put(&self.key(&["user", new]), &user, None).await?;
        Ok(new.to_owned())
    }

    async fn put_upstream(&self, session: &str, row: &Upstream, life: Duration) -> Result<()> {
        let key = self.upstream_key(session, &row.provider_id);
        let latest = self.key(&["user", "upstream", &row.user_id, &row.provider_id]);
        let all = self.rows_key(&row.user_id, &row.provider_id);
        let sealed = text(&self.sealed(&key, row)?)?;
        let [_, ended, index] = self.session_keys(session);
        let keys = [key, latest, all, self.connections_key(), ended, index];
        let is_connected = !row.access_token.is_empty();
        let times = (self.clock.now(), life);
        self.query(&scripts::put_upstream(&keys, &sealed, (session, &text(&session)?), times, is_connected))
            .await
    }

    async fn upstream(&self, session: &str, provider: &str) -> Result<Option<Upstream>> {
        let key = self.upstream_key(session, provider);
        Ok(self.get(&key).await?.and_then(|row| self.opened(&key, row)))
    }

    async fn session(&self, session: &str, providers: &[&str]) -> Result<Option<Vec<Option<Upstream>>>> {
        let keys = self.upstream_keys(session, providers);
        let mut command = cmd("MGET");
        command.arg(self.ended_key(session)).arg(&keys);
        let found: Vec<Option<String>> = self.query(&command).await?;
        let (ended, rows) = found.split_first().ok_or(StoreError::Unavailable)?;
        let rows = keys.iter().zip(rows).map(|(key, row)| self.row(key, row.as_ref()));
        Ok(ended.is_none().then(|| rows.collect()))
    }

    async fn sessions(&self, user: &str, providers: &[&str]) -> Result<Vec<UserSession>> {
        let Some(first) = providers.first() else { return Ok(Vec::new()) };
        let mut command = cmd("LRANGE");
        command.arg(self.rows_key(user, first)).arg(0).arg(-1);
        let known: Vec<String> = self.query(&command).await?;
        let ids: Vec<&str> = known.iter().filter_map(|key| self.session_of(key, first)).collect();
        // The keys of rows that have expired stay in the list.
        self.with_ids(&ids, providers).await
    }

    async fn user_session(&self, id: &str, providers: &[&str]) -> Result<Option<UserSession>> {
        Ok(self.with_ids(&[id], providers).await?.pop())
    }

    async fn all_sessions(&self, from: &str, most: usize, providers: &[&str]) -> Result<Page<UserSession>> {
        let (members, next) = self.page("sessions", from, most).await?;
        let now = self.clock.now();
        let ids = members.iter().filter(|(_, until)| *until > now).map(|(id, _)| &**id);
        Ok((self.with_ids(&ids.collect::<Vec<_>>(), providers).await?, next))
    }

    async fn latest_upstream(&self, user: &str, provider: &str) -> Result<Option<Upstream>> {
        match self.get::<String>(&self.key(&["user", "upstream", user, provider])).await? {
            Some(session) => self.upstream(&session, provider).await,
            None => Ok(None),
        }
    }

    async fn connections(&self, most: usize) -> Result<(usize, Vec<Connected>)> {
        let command = scripts::connections(&self.connections_key(), self.clock.now(), most);
        let (total, rows): (usize, Vec<String>) = self.query(&command).await?;
        Ok((total, rows.iter().filter_map(|row| parsed(row)).collect()))
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn put_registration(&self, key: &str, registration: &Registration) -> Result<()> {
        let place = self.key(&["dcr", key]);
        let secret = self.seal.seal(&place, &registration.client_secret).ok_or(StoreError::Unavailable)?;
        self.put(&place, &Registration { client_secret: secret, ..registration.clone() }, None).await
    }

    async fn registration(&self, key: &str) -> Result<Option<Registration>> {
        let place = self.key(&["dcr", key]);
        let Some(row) = self.get::<Registration>(&place).await? else { return Ok(None) };
        let secret = self.seal.open(&place, &row.client_secret);
        Ok(secret.map(|client_secret| Registration { client_secret, ..row }))
    }

    async fn lock(&self, key: &str, holder: &str, life: Duration) -> Result<bool> {
        self.hold(&self.key(&["lock", key]), holder, life).await
    }

    async fn renew_lock(&self, key: &str, holder: &str, life: Duration) -> Result<bool> {
        let keys = [self.key(&["lock", key])];
        Ok(self.query::<i64>(&scripts::renew_lock(&keys, holder, life)).await? == 1)
    }

    async fn unlock(&self, key: &str, holder: &str) -> Result<()> {
        self.query(&scripts::unlock(&[self.key(&["lock", key])], holder)).await
    }
}
