//! The authorization server that a proxy runs.

mod check;
mod identity;
mod secrets;
mod storage;
mod trust;
mod upstream;

use skep_api::{
    auth_server::{AuthServerStorageType, EmbeddedAuthServer},
    conditions::AuthServerStorageWarning,
    refs::SecretKeyRef,
};
use skep_config::{
    AuthServer, FieldError, FieldPath,
    auth_server::{
        AllowedClaim, AllowedUsers, ClientDocuments, ClientRegistration, SigningKeys, TokenLifespans,
    },
    env, paths,
    run_config::Oidc,
};

use super::{flag, or_empty};
use crate::{
    build::{EnvList, Identity, Volumes},
    reconcile::Condition,
};

pub(crate) use check::{check, check_single_upstream};
pub(crate) use identity::identity_synthesized;

/// The scopes that an authorization server supports by default.
const DEFAULT_SCOPES: [&str; 4] = ["openid", "profile", "email", "offline_access"];

/// Only the proxy's own user can read secrets.
const OWNER_ONLY: i32 = 0o400;

/// The authorization server of a workload. `oidc` is how the workload's proxy validates tokens: this server issues them,
/// so their audience must be the same.
///
/// Errors in `oidcConfigRef` are the workload's; the others name a field of the server.
pub(crate) fn auth_server(
    server: &EmbeddedAuthServer,
    oidc: Option<&Oidc>,
    identity: &Identity,
) -> Result<AuthServer, FieldError> {
    let oidc = accepting(oidc, &server.issuer)?;
    let built = AuthServer {
        issuer: server.issuer.clone(),
        authorization_endpoint_base_url: or_empty(&server.authorization_endpoint_base_url),
        signing_key_config: signing_keys(server),
        hmac_secret_files: (0..server.hmac_secret_refs.len()).map(paths::hmac_secret).collect(),
        token_lifespans: server.token_lifespans.as_ref().map(token_lifespans),
        upstreams: upstream::upstreams(server, &oidc.resource_url)?,
        scopes_supported: oidc.scopes.clone(),
        baseline_client_scopes: server.baseline_client_scopes.clone(),
        allowed_audiences: vec![oidc.resource_url.clone()],
        storage: storage::storage(server, identity)?,
        disable_upstream_token_injection: flag(server.disable_upstream_token_injection),
        cimd: client_documents(server),
        insecure_allow_http: flag(server.insecure_allow_http),
        trusted_issuers: trust::trusted_issuers(server)?,
        allow_confidential_client_registration: flag(server.allow_confidential_client_registration),
        force_confidential_redirect_uris: server.force_confidential_redirect_uris.clone(),
        insecure_allow_confidential_over_loopback_http: flag(
            server.insecure_allow_confidential_over_loopback_http,
        ),
        delegate_clients: trust::delegate_clients(server),
        clients_without_consent: server.clients_without_consent.clone(),
        session_lifespan: go_duration(&server.session_lifespan),
        allowed_users: server.allowed_users.as_ref().map(allowed_users),
        client_registration: server.client_registration.as_ref().map(client_registration),
        ..AuthServer::default()
    };
    match trust::check_delegates(&built).into_iter().next() {
        Some(error) => Err(error),
        None => Ok(built),
    }
}

/// How the workload validates tokens, if those of this issuer are accepted.
fn accepting<'a>(oidc: Option<&'a Oidc>, issuer: &str) -> Result<&'a Oidc, FieldError> {
    let Some(oidc) = oidc else {
        let message = "is required: it validates the tokens of an embedded authorization server";
        return Err(FieldError::new("oidcConfigRef", message));
    };
    if !oidc.accepts_issuer(issuer) {
        let message = format!(
            "accepts tokens of {:?}, and the authorization server issues them as {issuer:?}: use the same issuer",
            oidc.issuer
        );
        return Err(FieldError::new("oidcConfigRef", message));
    }
    let Oidc { audience, resource_url, .. } = oidc;
    if resource_url.is_empty() {
        return Err(FieldError::new("oidcConfigRef.resourceUrl", "is required: tokens are issued for it"));
    }
    if audience != resource_url {
        let message = format!(
            "{audience:?} is not {resource_url:?}, the audience of issued tokens: set audience and resourceUrl to the \
             same value"
        );
        return Err(FieldError::new("oidcConfigRef.audience", message));
    }
    Ok(oidc)
}

/// Adds the server's scopes to those that clients request, unless the workload sets them.
pub(crate) fn announce_scopes(server: &AuthServer, oidc: &mut Oidc) {
    if oidc.scopes.is_empty() {
        oidc.scopes = scopes(server);
    }
}

fn scopes(server: &AuthServer) -> Vec<String> {
    if server.scopes_supported.is_empty() {
        DEFAULT_SCOPES.map(Into::into).into()
    } else {
        server.scopes_supported.clone()
    }
}

/// The warning about replicas that do not share the logins of a server.
pub(crate) fn storage_warning(server: &EmbeddedAuthServer, replicas: Option<i32>) -> Option<Condition> {
    let is_redis =
        server.storage.as_ref().is_some_and(|storage| storage.type_() == AuthServerStorageType::Redis);
    let fields = [
        ("storage with type redis", is_redis),
        ("signingKeySecretRefs", !server.signing_key_secret_refs.is_empty()),
        ("hmacSecretRefs", !server.hmac_secret_refs.is_empty()),
    ];
    let missing: Vec<_> = fields.iter().filter(|(_, is_set)| !is_set).map(|(field, _)| *field).collect();
    if replicas.unwrap_or_default() <= 1 || missing.is_empty() {
        return None;
    }
    let message =
        format!("the replicas do not share logins: set {} of the authorization server", missing.join(", "));
    Some(Condition::new(AuthServerStorageWarning::AuthServerStorageMissingForReplicas, message))
}

fn signing_keys(server: &EmbeddedAuthServer) -> Option<SigningKeys> {
    let mut files = (0..server.signing_key_secret_refs.len()).map(paths::signing_key_file);
    Some(SigningKeys {
        key_dir: paths::SIGNING_KEYS_FOLDER.into(),
        signing_key_file: files.next()?,
        fallback_key_files: files.collect(),
    })
}

fn token_lifespans(lifespans: &skep_api::auth_server::TokenLifespans) -> TokenLifespans {
    TokenLifespans {
        access_token_lifespan: go_duration(&lifespans.access_token_lifespan),
        refresh_token_lifespan: go_duration(&lifespans.refresh_token_lifespan),
        auth_code_lifespan: go_duration(&lifespans.auth_code_lifespan),
    }
}

fn client_documents(server: &EmbeddedAuthServer) -> Option<ClientDocuments> {
    let cimd = server.cimd.as_ref().filter(|cimd| flag(cimd.enabled))?;
    Some(ClientDocuments {
        enabled: true,
        cache_max_size: cimd.cache_max_size.and_then(|size| u32::try_from(size).ok()).unwrap_or_default(),
        cache_fallback_ttl: go_duration(&cimd.cache_fallback_ttl),
    })
}

fn allowed_users(users: &skep_api::auth_server::AllowedUsers) -> AllowedUsers {
    let claims = users.claims.iter();
    AllowedUsers {
        email_domains: users.email_domains.clone(),
        claims: claims
            .map(|claim| AllowedClaim { name: claim.name.clone(), values: claim.values.clone() })
            .collect(),
    }
}

fn client_registration(registration: &skep_api::auth_server::ClientRegistration) -> ClientRegistration {
    let token = registration.initial_access_token_ref.as_ref().map(|_| env::CLIENT_REGISTRATION_TOKEN);
    ClientRegistration {
        disabled: flag(registration.disabled),
        initial_access_token_env_var: token.unwrap_or_default().to_owned(),
        redirect_hosts: registration.redirect_hosts.clone(),
    }
}

fn go_duration(duration: &Option<skep_api::Duration>) -> String {
    duration.as_ref().map(|duration| duration.as_str().into()).unwrap_or_default()
}

/// Adds the secrets that the server presents to other services.
pub(crate) fn add_env(server: &EmbeddedAuthServer, list: &mut EnvList) {
    for (name, secret) in variables(server) {
        list.set_from_secret(name, secret);
    }
}

/// The Secrets that it needs, each with the field that names it.
pub(crate) fn secrets(server: &EmbeddedAuthServer) -> Vec<(FieldPath, &SecretKeyRef)> {
    secrets::named(server)
}

fn variables(server: &EmbeddedAuthServer) -> Vec<(String, &SecretKeyRef)> {
    let delegates = server.delegate_clients.iter().enumerate();
    let delegates = delegates.map(|(i, client)| (env::delegate_client_secret(i), &client.client_secret_ref));
    let registration = server.client_registration.as_ref();
    let registration = registration.and_then(|registration| registration.initial_access_token_ref.as_ref());
    let registration = registration.map(|secret| (env::CLIENT_REGISTRATION_TOKEN.to_owned(), secret));
    let upstreams = server.upstream_providers.iter().flat_map(upstream::variables);
    upstreams.chain(delegates).chain(registration).chain(storage::variables(server)).collect()
}

/// Adds the files with its keys and passwords.
pub(crate) fn add_volumes(server: &EmbeddedAuthServer, volumes: &mut Volumes) {
    for (volume, path, secret) in files(server) {
        let (folder, file) = path.rsplit_once('/').unwrap_or_default();
        volumes.secret_file(&volume, secret, folder, file, Some(OWNER_ONLY));
    }
}

/// Each file: the name of its volume, its path and the source of its content.
fn files(server: &EmbeddedAuthServer) -> Vec<(String, String, &SecretKeyRef)> {
    let keys = server.signing_key_secret_refs.iter().enumerate().map(|(i, secret)| {
        let path = format!("{}/{}", paths::SIGNING_KEYS_FOLDER, paths::signing_key_file(i));
        (format!("authserver-signing-key-{i}"), path, secret)
    });
    let hmac = server
        .hmac_secret_refs
        .iter()
        .enumerate()
        .map(|(i, secret)| (format!("authserver-hmac-secret-{i}"), paths::hmac_secret(i), secret));
    let redis =
        storage::files(server).map(|(volume, path, secret)| (volume.to_owned(), path.to_owned(), secret));
    keys.chain(hmac).chain(redis).collect()
}

#[cfg(test)]
mod tests;
