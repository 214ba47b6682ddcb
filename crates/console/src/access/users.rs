//! The users that are signed in.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use super::rights::Rights;
use crate::limits;

/// A user of the cluster.
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) rights: Rights,
    /// When they signed in, or when their token was last verified.
    since: Instant,
    /// How long they stay signed in.
    time: Duration,
}

impl User {
    pub(super) fn new(name: String, rights: Rights, time: Duration) -> Self {
        Self { name, rights, since: Instant::now(), time }
    }

    fn is_signed_in(&self) -> bool {
        self.since.elapsed() < self.time
    }
}

/// How long the user of a token stays signed in: until it expires, if it names the time, but not too long.
pub(super) fn session_time(token: &str) -> Duration {
    // The API server has verified the token. Here, its time can only shorten a session.
    let claims = token.split('.').nth(1).and_then(|claims| URL_SAFE_NO_PAD.decode(claims).ok());
    let claims: Value = claims.and_then(|claims| serde_json::from_slice(&claims).ok()).unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = claims["exp"].as_u64().map(|end| Duration::from_secs(end).saturating_sub(now));
    left.unwrap_or(limits::SESSION_TIME).min(limits::SESSION_TIME)
}

/// Users by the digest of what they authenticate with, which is itself not stored.
#[derive(Default)]
pub(super) struct Users(Mutex<HashMap<Vec<u8>, Arc<User>>>);

impl Users {
    pub(super) fn find(&self, credential: &str) -> Option<Arc<User>> {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(credential);
        let user = users.get(&key)?.clone();
        if user.is_signed_in() {
            return Some(user);
        }
        users.remove(&key);
        None
    }

    /// Adds a session of a user. One who has too many loses their oldest, and if there are too many in all, the user with most does.
    pub(super) fn add(&self, credential: &str, user: Arc<User>) {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, user| user.is_signed_in());
        let mut counts = HashMap::<&str, usize>::new();
        for user in users.values() {
            *counts.entry(&user.name).or_default() += 1;
        }
        let is_at_most = counts.get(&*user.name).is_some_and(|count| *count >= limits::SESSIONS_OF_USER);
        let loser = match counts.into_iter().max_by_key(|(_, count)| *count) {
            _ if is_at_most => Some(user.name.clone()),
            Some((most, _)) if users.len() >= limits::SESSIONS => Some(most.to_owned()),
            _ => None,
        };
        if let Some(loser) = loser {
            let sessions = users.iter().filter(|(_, user)| user.name == loser);
            let oldest = sessions.min_by_key(|(_, user)| user.since).map(|(key, _)| key.clone());
            oldest.and_then(|key| users.remove(&key));
        }
        users.insert(key(credential), user);
    }

    pub(super) fn remove(&self, credential: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key(credential));
    }
}

fn key(credential: &str) -> Vec<u8> {
    digest(&SHA256, credential.as_bytes()).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(name: &str) -> Arc<User> {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let rights = Rights::new(kube::Client::try_from(config).unwrap());
        Arc::new(User::new(name.into(), rights, limits::SESSION_TIME))
    }

    #[tokio::test]
    async fn a_user_who_signs_in_without_end_ends_their_own_oldest_sessions() {
        let users = Users::default();
        users.add("of-ann", user("ann"));
        for number in 0..2 * limits::SESSIONS {
            users.add(&format!("of-bob-{number}"), user("bob"));
        }
        assert!(users.find("of-ann").is_some());
        let last = 2 * limits::SESSIONS - 1;
        let oldest = last + 1 - limits::SESSIONS_OF_USER;
        assert!(users.find(&format!("of-bob-{last}")).is_some());
        assert!(users.find(&format!("of-bob-{oldest}")).is_some());
        assert!(users.find(&format!("of-bob-{}", oldest - 1)).is_none());
    }

    #[tokio::test]
    async fn many_users_with_many_sessions_end_none_of_one_with_few() {
        let users = Users::default();
        users.add("of-ann", user("ann"));
        for number in 0..2 * limits::SESSIONS {
            users.add(&number.to_string(), user(&format!("user-{}", number % 32)));
        }
        assert!(users.find("of-ann").is_some());
        assert!(users.0.lock().unwrap().len() <= limits::SESSIONS);
    }

    #[test]
    fn a_session_ends_with_its_token_and_lasts_an_hour_at_most() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let time = |claims: Value| {
            session_time(&format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims.to_string()))).as_secs()
        };
        assert!((50..=60).contains(&time(json!({"exp": now + 60}))));
        assert_eq!(time(json!({"exp": now - 1})), 0);
        assert_eq!(time(json!({"exp": u64::MAX})), limits::SESSION_TIME.as_secs());
        assert_eq!(time(json!({})), limits::SESSION_TIME.as_secs());
        assert_eq!(session_time("opaque"), limits::SESSION_TIME);
    }
}
