//! The users that are signed in.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use aws_lc_rs::digest::{SHA256, digest};

use super::rights::Rights;
use crate::limits;

/// A user of the cluster.
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) rights: Rights,
    /// When they signed in, or when their token was last verified.
    since: Instant,
}

impl User {
    pub(super) fn new(name: String, rights: Rights) -> Self {
        Self { name, rights, since: Instant::now() }
    }
}

/// Users by the digest of what they authenticate with, which is itself not stored.
#[derive(Default)]
pub(super) struct Users(Mutex<HashMap<Vec<u8>, Arc<User>>>);

impl Users {
    pub(super) fn find(&self, credential: &str) -> Option<Arc<User>> {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(credential);
        let user = users.get(&key)?.clone();
        if user.since.elapsed() < limits::SESSION_TIME {
            return Some(user);
        }
        users.remove(&key);
        None
    }

    /// Adds a user. If there are too many, the one who signed in first is signed out.
    pub(super) fn add(&self, credential: &str, user: Arc<User>) {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, user| user.since.elapsed() < limits::SESSION_TIME);
        if users.len() >= limits::SESSIONS {
            let first = users.iter().min_by_key(|(_, user)| user.since).map(|(key, _)| key.clone());
            first.and_then(|key| users.remove(&key));
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
