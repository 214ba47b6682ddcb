//! The Secrets that an authorization server needs.

use skep_api::{
    auth_server::{EmbeddedAuthServer, UpstreamProvider},
    refs::SecretKeyRef,
};

use skep_config::FieldPath;

use super::storage;

/// A Secret's key with the field that names it.
type Named<'a> = (FieldPath, &'a SecretKeyRef);

/// The Secrets that the server refers to.
pub(super) fn named(server: &EmbeddedAuthServer) -> Vec<Named<'_>> {
    let delegates = server.delegate_clients.iter().enumerate();
    let delegates = delegates.map(|(index, client)| {
        let field = FieldPath::from("delegateClients").index(index).join("clientSecretRef");
        (field, &client.client_secret_ref)
    });
    let registration = server.client_registration.as_ref();
    let registration = registration.and_then(|registration| registration.initial_access_token_ref.as_ref());
    let registration =
        registration.map(|secret| (FieldPath::from("clientRegistration.initialAccessTokenRef"), secret));
    listed("signingKeySecretRefs", &server.signing_key_secret_refs)
        .chain(listed("hmacSecretRefs", &server.hmac_secret_refs))
        .chain(server.upstream_providers.iter().enumerate().flat_map(of_upstream))
        .chain(delegates)
        .chain(registration)
        .chain(of_redis(server))
        .collect()
}

fn listed<'a>(field: &'static str, secrets: &'a [SecretKeyRef]) -> impl Iterator<Item = Named<'a>> {
    secrets.iter().enumerate().map(move |(index, secret)| (FieldPath::from(field).index(index), secret))
}

fn of_upstream((index, provider): (usize, &UpstreamProvider)) -> impl Iterator<Item = Named<'_>> {
    let (oidc, oauth2) = (provider.oidc_config.as_ref(), provider.oauth2_config.as_ref());
    let registration = oauth2.and_then(|oauth2| oauth2.dcr_config.as_ref());
    let secrets = [
        ("oidcConfig.clientSecretRef", oidc.and_then(|oidc| oidc.client_secret_ref.as_ref())),
        ("oauth2Config.clientSecretRef", oauth2.and_then(|oauth2| oauth2.client_secret_ref.as_ref())),
        (
            "oauth2Config.dcrConfig.initialAccessTokenRef",
            registration.and_then(|registration| registration.initial_access_token_ref.as_ref()),
        ),
    ];
    let provider = FieldPath::from("upstreamProviders").index(index);
    secrets.into_iter().filter_map(move |(field, secret)| Some((provider.clone().join(field), secret?)))
}

fn of_redis(server: &EmbeddedAuthServer) -> impl Iterator<Item = Named<'_>> {
    storage::redis(server).into_iter().flat_map(|redis| {
        let user = &redis.acl_user_config;
        let secrets = [
            ("aclUserConfig.usernameSecretRef", user.username_secret_ref.as_ref()),
            ("aclUserConfig.passwordSecretRef", Some(&user.password_secret_ref)),
            ("tls.caCertSecretRef", redis.tls.as_ref().and_then(|tls| tls.ca_cert_secret_ref.as_ref())),
            (
                "sentinelTls.caCertSecretRef",
                redis.sentinel_tls.as_ref().and_then(|tls| tls.ca_cert_secret_ref.as_ref()),
            ),
            ("encryptionKeySecretRef", redis.encryption_key_secret_ref.as_ref()),
        ];
        secrets
            .into_iter()
            .filter_map(|(field, secret)| Some((FieldPath::from("storage.redis").join(field), secret?)))
    })
}
