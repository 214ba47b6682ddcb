//! Where the authorization server stores its sessions and tokens.

use skep_api::{
    auth_server::{self as api, EmbeddedAuthServer},
    refs::SecretKeyRef,
};
use skep_config::{
    FieldError,
    auth_server::{
        AuthServerStorage, AuthServerStorageType, RedisAclUser, RedisSentinel, RedisStorage, RedisTls,
    },
    env, paths,
};

use crate::{
    build::Identity,
    config_refs::{flag, or_empty},
};

/// Redis, or none for the process's own memory.
pub(super) fn storage(
    server: &EmbeddedAuthServer,
    identity: &Identity,
) -> Result<Option<AuthServerStorage>, FieldError> {
    check(server)?;
    let Some(redis) = redis(server) else { return Ok(None) };
    let config = RedisStorage {
        addr: or_empty(&redis.addr),
        sentinel_config: redis.sentinel_config.as_ref().map(|sentinel| redis_sentinel(sentinel, identity)),
        cluster_mode: flag(redis.cluster_mode),
        auth_type: RedisStorage::ACL_USER.into(),
        acl_user_config: Some(acl_user(&redis.acl_user_config)),
        key_prefix: RedisStorage::key_prefix(&identity.namespace, &identity.name),
        dial_timeout: redis.dial_timeout().as_str().into(),
        read_timeout: redis.read_timeout().as_str().into(),
        write_timeout: redis.write_timeout().as_str().into(),
        tls: redis.tls.as_ref().map(|tls| redis_tls(tls, paths::REDIS_CA)),
        sentinel_tls: redis.sentinel_tls.as_ref().map(|tls| redis_tls(tls, paths::REDIS_SENTINEL_CA)),
        encryption_key_file: redis
            .encryption_key_secret_ref
            .as_ref()
            .map(|_| paths::REDIS_ENCRYPTION_KEY.to_owned())
            .unwrap_or_default(),
    };
    Ok(Some(AuthServerStorage { type_: Some(AuthServerStorageType::Redis), redis_config: Some(config) }))
}

/// Checks that Redis has an address.
pub(super) fn check(server: &EmbeddedAuthServer) -> Result<(), FieldError> {
    let Some(storage) = &server.storage else { return Ok(()) };
    if storage.type_() != api::AuthServerStorageType::Redis {
        return Ok(());
    }
    let Some(redis) = &storage.redis else {
        return Err(FieldError::new("storage.redis", "is required with type redis"));
    };
    let Some(sentinel) = &redis.sentinel_config else { return Ok(()) };
    if sentinel.sentinel_addrs.is_empty() == sentinel.sentinel_service.is_none() {
        let message = "set either sentinelAddrs or sentinelService";
        return Err(FieldError::new("storage.redis.sentinelConfig", message));
    }
    Ok(())
}

fn redis_sentinel(sentinel: &api::RedisSentinel, identity: &Identity) -> RedisSentinel {
    let service = sentinel.sentinel_service.iter().map(|service| {
        let namespace = service.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or(&identity.namespace);
        format!("{}.{namespace}.svc.cluster.local:{}", service.name, service.port())
    });
    RedisSentinel {
        master_name: sentinel.master_name.clone(),
        sentinel_addrs: sentinel.sentinel_addrs.iter().cloned().chain(service).collect(),
        db: sentinel.db.unwrap_or_default(),
    }
}

fn acl_user(user: &api::RedisAclUser) -> RedisAclUser {
    let username = user.username_secret_ref.is_some().then_some(env::AUTH_SERVER_REDIS_USERNAME);
    RedisAclUser {
        username_env_var: username.unwrap_or_default().into(),
        password_env_var: env::AUTH_SERVER_REDIS_PASSWORD.into(),
    }
}

fn redis_tls(tls: &api::RedisTls, ca: &str) -> RedisTls {
    RedisTls {
        insecure_skip_verify: flag(tls.insecure_skip_verify),
        ca_cert_file: tls.ca_cert_secret_ref.as_ref().map(|_| ca.to_owned()).unwrap_or_default(),
    }
}

pub(super) fn variables(server: &EmbeddedAuthServer) -> impl Iterator<Item = (String, &SecretKeyRef)> {
    redis(server).into_iter().flat_map(|redis| {
        let user = &redis.acl_user_config;
        let username = user.username_secret_ref.as_ref();
        let username = username.map(|secret| (env::AUTH_SERVER_REDIS_USERNAME.to_owned(), secret));
        username.into_iter().chain([(env::AUTH_SERVER_REDIS_PASSWORD.to_owned(), &user.password_secret_ref)])
    })
}

pub(super) fn files(
    server: &EmbeddedAuthServer,
) -> impl Iterator<Item = (&'static str, &'static str, &SecretKeyRef)> {
    redis(server).into_iter().flat_map(|redis| {
        let master = redis.tls.as_ref().and_then(|tls| tls.ca_cert_secret_ref.as_ref());
        let sentinel = redis.sentinel_tls.as_ref().and_then(|tls| tls.ca_cert_secret_ref.as_ref());
        let master = master.map(|secret| ("redis-tls-ca-master", paths::REDIS_CA, secret));
        let sentinel = sentinel.map(|secret| ("redis-tls-ca-sentinel", paths::REDIS_SENTINEL_CA, secret));
        let key = redis.encryption_key_secret_ref.as_ref();
        let key = key.map(|secret| ("redis-encryption-key", paths::REDIS_ENCRYPTION_KEY, secret));
        master.into_iter().chain(sentinel).chain(key)
    })
}

/// Redis, if the type is redis.
pub(super) fn redis(server: &EmbeddedAuthServer) -> Option<&api::RedisStorage> {
    let storage = server.storage.as_ref()?;
    storage.redis.as_ref().filter(|_| storage.type_() == api::AuthServerStorageType::Redis)
}
