//! The storage for the sessions of a workload.

use skep_api::{
    conditions::SessionStorageWarning,
    workload::{SessionProvider, SessionStorage},
};
use skep_config::run_config::SessionRedis;

use crate::{reconcile::Condition, settings::Settings};

/// The Redis with the sessions that replicas share. Without a storage in the spec, it is the installation's.
pub(crate) fn redis(storage: Option<&SessionStorage>, settings: &Settings) -> Option<SessionRedis> {
    let Some(storage) = storage else {
        let address = settings.default_redis.clone();
        return address.map(|address| SessionRedis { address, ..SessionRedis::default() });
    };
    is_shared(storage).then(|| SessionRedis {
        address: storage.address.clone().unwrap_or_default(),
        db: storage.db.unwrap_or_default(),
        key_prefix: storage.key_prefix.clone().unwrap_or_default(),
    })
}

/// The condition about replicas that do not share their sessions.
pub(crate) fn condition(storage: Option<&SessionStorage>, replicas: Option<i32>) -> Condition {
    use SessionStorageWarning::{
        SessionStorageConfigured, SessionStorageMissingForReplicas, SessionStorageWarningNotApplicable,
    };
    if replicas.unwrap_or_default() <= 1 {
        return Condition::new(SessionStorageWarningNotApplicable, "one replica has all sessions");
    }
    if storage.is_some_and(is_shared) {
        return Condition::new(SessionStorageConfigured, "the replicas share sessions in Redis");
    }
    let message = "the replicas do not share sessions: set sessionStorage with provider redis";
    Condition::new(SessionStorageMissingForReplicas, message)
}

fn is_shared(storage: &SessionStorage) -> bool {
    storage.provider == SessionProvider::Redis
}
