//! The identity providers that the authorization server sends users to.

use skep_api::{
    auth_server::{self as api, EmbeddedAuthServer, UpstreamProvider},
    refs::SecretKeyRef,
};
use skep_config::{
    FieldError, FieldPath,
    auth_server::{
        DynamicRegistration, IdentityFromToken, Oauth2Upstream, OidcUpstream, TokenResponseMapping, Upstream,
        UpstreamType, UserInfo, UserInfoFields,
    },
    env,
};

use crate::config_refs::{flag, non_empty, or_empty};

/// The path of the redirect URI of providers, below the address of the workload.
const CALLBACK: &str = "/oauth/callback";

/// The providers where users log in, for the proxy of the workload with this address.
pub(super) fn upstreams(
    server: &EmbeddedAuthServer,
    resource_url: &str,
) -> Result<Vec<Upstream>, FieldError> {
    let callback = format!("{}{CALLBACK}", resource_url.trim_end_matches('/'));
    let providers = server.upstream_providers.iter().enumerate();
    let upstreams = providers.map(|(index, provider)| {
        let field = || FieldPath::from("upstreamProviders").index(index);
        upstream(provider, &callback).map_err(|error| error.within(field()))
    });
    upstreams.collect()
}

fn upstream(provider: &UpstreamProvider, callback: &str) -> Result<Upstream, FieldError> {
    let (type_, oidc_config, oauth2_config) = match Provider::of(provider)? {
        Provider::Oidc(oidc) => (UpstreamType::Oidc, Some(oidc_upstream(provider, oidc, callback)), None),
        Provider::Oauth2(oauth2) => {
            (UpstreamType::Oauth2, None, Some(oauth2_upstream(provider, oauth2, callback)))
        }
    };
    Ok(Upstream { name: provider.name.clone(), type_, oidc_config, oauth2_config })
}

/// A provider by its protocol.
pub(super) enum Provider<'a> {
    Oidc(&'a api::OidcUpstream),
    Oauth2(&'a api::Oauth2Upstream),
}

impl<'a> Provider<'a> {
    /// The configuration that goes with the type. The field of an error is below the provider.
    pub(super) fn of(provider: &'a UpstreamProvider) -> Result<Self, FieldError> {
        match (provider.type_, &provider.oidc_config, &provider.oauth2_config) {
            (api::UpstreamType::Oidc, Some(oidc), None) => Ok(Self::Oidc(oidc)),
            (api::UpstreamType::Oauth2, None, Some(oauth2)) => Ok(Self::Oauth2(oauth2)),
            (type_, ..) => {
                let required = match type_ {
                    api::UpstreamType::Oidc => "oidcConfig",
                    api::UpstreamType::Oauth2 => "oauth2Config",
                };
                let message = format!("type {} needs {required} and nothing else", type_.as_str());
                Err(FieldError::new("type", message))
            }
        }
    }
}

fn oidc_upstream(provider: &UpstreamProvider, oidc: &api::OidcUpstream, callback: &str) -> OidcUpstream {
    OidcUpstream {
        issuer_url: oidc.issuer_url.clone(),
        client_id: oidc.client_id.clone(),
        client_secret_env_var: client_secret(provider, oidc.client_secret_ref.as_ref()),
        redirect_uri: non_empty(&oidc.redirect_uri).unwrap_or(callback).into(),
        scopes: oidc.scopes.clone(),
        userinfo_override: oidc.user_info_override.as_ref().map(user_info),
        additional_authorization_params: oidc.additional_authorization_params.clone(),
        subject_claim: or_empty(&oidc.subject_claim),
        ..OidcUpstream::default()
    }
}

fn oauth2_upstream(
    provider: &UpstreamProvider,
    oauth2: &api::Oauth2Upstream,
    callback: &str,
) -> Oauth2Upstream {
    Oauth2Upstream {
        authorization_endpoint: oauth2.authorization_endpoint.clone(),
        token_endpoint: oauth2.token_endpoint.clone(),
        client_id: or_empty(&oauth2.client_id),
        client_secret_file: String::new(),
        client_secret_env_var: client_secret(provider, oauth2.client_secret_ref.as_ref()),
        redirect_uri: non_empty(&oauth2.redirect_uri).unwrap_or(callback).into(),
        scopes: oauth2.scopes.clone(),
        userinfo: oauth2.user_info.as_ref().map(user_info),
        token_response_mapping: oauth2.token_response_mapping.as_ref().map(token_response_mapping),
        identity_from_token: oauth2.identity_from_token.as_ref().map(identity_from_token),
        additional_authorization_params: oauth2.additional_authorization_params.clone(),
        dcr_config: oauth2.dcr_config.as_ref().map(|dcr| dynamic_registration(provider, dcr)),
        allow_private_ips: flag(oauth2.allow_private_ips),
        insecure_allow_http: flag(oauth2.insecure_allow_http),
    }
}

fn client_secret(provider: &UpstreamProvider, secret: Option<&SecretKeyRef>) -> String {
    secret.map(|_| env::upstream_client_secret(&provider.name)).unwrap_or_default()
}

fn dynamic_registration(provider: &UpstreamProvider, dcr: &api::DynamicRegistration) -> DynamicRegistration {
    let token = dcr.initial_access_token_ref.as_ref();
    DynamicRegistration {
        discovery_url: or_empty(&dcr.discovery_url),
        registration_endpoint: or_empty(&dcr.registration_endpoint),
        initial_access_token_file: String::new(),
        initial_access_token_env_var: token
            .map(|_| env::upstream_registration_token(&provider.name))
            .unwrap_or_default(),
        software_id: or_empty(&dcr.software_id),
        software_statement: or_empty(&dcr.software_statement),
    }
}

fn user_info(info: &api::UserInfo) -> UserInfo {
    UserInfo {
        endpoint_url: info.endpoint_url.clone(),
        http_method: info.http_method.map(|method| method.as_str().into()).unwrap_or_default(),
        additional_headers: info.additional_headers.clone(),
        field_mapping: info.field_mapping.as_ref().map(|fields| UserInfoFields {
            subject_fields: fields.subject_fields.clone(),
            name_fields: fields.name_fields.clone(),
            email_fields: fields.email_fields.clone(),
        }),
    }
}

fn token_response_mapping(mapping: &api::TokenResponseMapping) -> TokenResponseMapping {
    TokenResponseMapping {
        access_token_path: mapping.access_token_path.clone(),
        scope_path: or_empty(&mapping.scope_path),
        refresh_token_path: or_empty(&mapping.refresh_token_path),
        expires_in_path: or_empty(&mapping.expires_in_path),
    }
}

fn identity_from_token(identity: &api::IdentityFromToken) -> IdentityFromToken {
    IdentityFromToken {
        subject_path: identity.subject_path.clone(),
        name_path: or_empty(&identity.name_path),
        email_path: or_empty(&identity.email_path),
    }
}

/// The secrets that the server presents to a provider.
pub(super) fn variables(provider: &UpstreamProvider) -> impl Iterator<Item = (String, &SecretKeyRef)> {
    let (oidc, oauth2) = (provider.oidc_config.as_ref(), provider.oauth2_config.as_ref());
    let client = oidc
        .and_then(|oidc| oidc.client_secret_ref.as_ref())
        .or_else(|| oauth2?.client_secret_ref.as_ref())
        .map(|secret| (env::upstream_client_secret(&provider.name), secret));
    let registration = oauth2
        .and_then(|oauth2| oauth2.dcr_config.as_ref()?.initial_access_token_ref.as_ref())
        .map(|secret| (env::upstream_registration_token(&provider.name), secret));
    client.into_iter().chain(registration)
}
