//! The identity providers that the authorization server sends users to.

use skep_api::{
    auth_server::{self as api, EmbeddedAuthServer, UpstreamProvider},
    refs::SecretKeyRef,
};
use skep_config::{
    auth_server::{
        DynamicRegistration, IdentityFromToken, Oauth2Upstream, OidcUpstream, TokenResponseMapping, Upstream,
        UpstreamType, UserInfo, UserInfoFields,
    },
    env,
};

use crate::parts::{flag, said, text};

/// Where providers send users back to, below the address of the workload.
const CALLBACK: &str = "/oauth/callback";

/// Where users log in, for the proxy of the workload with this address.
pub(super) fn upstreams(server: &EmbeddedAuthServer, resource_url: &str) -> Result<Vec<Upstream>, String> {
    let callback = format!("{}{CALLBACK}", resource_url.trim_end_matches('/'));
    server.upstream_providers.iter().map(|provider| upstream(provider, &callback)).collect()
}

fn upstream(provider: &UpstreamProvider, callback: &str) -> Result<Upstream, String> {
    let (type_, oidc_config, oauth2_config) = match Provider::of(provider)? {
        Provider::Oidc(oidc) => (UpstreamType::Oidc, Some(by_oidc(provider, oidc, callback)), None),
        Provider::Oauth2(oauth2) => (UpstreamType::Oauth2, None, Some(by_oauth2(provider, oauth2, callback))),
    };
    Ok(Upstream { name: provider.name.clone(), type_, oidc_config, oauth2_config })
}

/// A provider by what it speaks.
pub(super) enum Provider<'a> {
    Oidc(&'a api::OidcUpstream),
    Oauth2(&'a api::Oauth2Upstream),
}

impl<'a> Provider<'a> {
    pub(super) fn of(provider: &'a UpstreamProvider) -> Result<Self, String> {
        let UpstreamProvider { name, type_, oidc_config, oauth2_config } = provider;
        match (type_, oidc_config, oauth2_config) {
            (api::UpstreamType::Oidc, Some(oidc), None) => Ok(Self::Oidc(oidc)),
            (api::UpstreamType::Oauth2, None, Some(oauth2)) => Ok(Self::Oauth2(oauth2)),
            _ => Err(format!(
                "upstreamProviders[{name:?}]: set oidcConfig with type oidc, or oauth2Config with type oauth2, and \
                 leave the other one out"
            )),
        }
    }
}

fn by_oidc(provider: &UpstreamProvider, oidc: &api::OidcUpstream, callback: &str) -> OidcUpstream {
    OidcUpstream {
        issuer_url: oidc.issuer_url.clone(),
        client_id: oidc.client_id.clone(),
        client_secret_env_var: client_secret(provider, oidc.client_secret_ref.as_ref()),
        redirect_uri: said(&oidc.redirect_uri).unwrap_or(callback).into(),
        scopes: oidc.scopes.clone(),
        userinfo_override: oidc.user_info_override.as_ref().map(user_info),
        additional_authorization_params: oidc.additional_authorization_params.clone(),
        subject_claim: text(&oidc.subject_claim),
        ..OidcUpstream::default()
    }
}

fn by_oauth2(provider: &UpstreamProvider, oauth2: &api::Oauth2Upstream, callback: &str) -> Oauth2Upstream {
    Oauth2Upstream {
        authorization_endpoint: oauth2.authorization_endpoint.clone(),
        token_endpoint: oauth2.token_endpoint.clone(),
        client_id: text(&oauth2.client_id),
        client_secret_file: String::new(),
        client_secret_env_var: client_secret(provider, oauth2.client_secret_ref.as_ref()),
        redirect_uri: said(&oauth2.redirect_uri).unwrap_or(callback).into(),
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
        discovery_url: text(&dcr.discovery_url),
        registration_endpoint: text(&dcr.registration_endpoint),
        initial_access_token_file: String::new(),
        initial_access_token_env_var: token
            .map(|_| env::upstream_registration_token(&provider.name))
            .unwrap_or_default(),
        software_id: text(&dcr.software_id),
        software_statement: text(&dcr.software_statement),
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
        scope_path: text(&mapping.scope_path),
        refresh_token_path: text(&mapping.refresh_token_path),
        expires_in_path: text(&mapping.expires_in_path),
    }
}

fn identity_from_token(identity: &api::IdentityFromToken) -> IdentityFromToken {
    IdentityFromToken {
        subject_path: identity.subject_path.clone(),
        name_path: text(&identity.name_path),
        email_path: text(&identity.email_path),
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
