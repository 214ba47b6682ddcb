//! Authentication, of clients and to backends.

use skep_config::{FieldError, FieldPath};

use super::missing;
use crate::vmcp::{Authz, BackendAuthStrategy, IncomingAuth, Oidc, OutgoingAuth};

pub(super) fn incoming(auth: &IncomingAuth) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (&*auth.type_, &auth.oidc) {
        (IncomingAuth::OIDC, None) => errors.push(missing("oidc")),
        (IncomingAuth::OIDC, Some(oidc)) => {
            errors.extend(tokens(oidc).into_iter().map(|error| error.within("oidc")));
        }
        (IncomingAuth::LOCAL | IncomingAuth::ANONYMOUS, _) => {}
        (other, _) => {
            errors.push(FieldError::new("type", format!("{other:?} must be oidc, local or anonymous")));
        }
    }
    if let Some(authz) = &auth.authz {
        errors.extend(policies(authz).map(|error| error.within("authz")));
    }
    errors
}

fn tokens(oidc: &Oidc) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match &*oidc.issuer {
        "" => errors.push(missing("issuer")),
        issuer if issuer.starts_with("http://") && oidc.insecure_allow_http != Some(true) => {
            errors.push(FieldError::new("issuer", "must be https, or insecureAllowHttp true"));
        }
        _ => {}
    }
    if oidc.audience.is_empty() {
        errors.push(missing("audience"));
    }
    errors.extend(ca_bundle(oidc.ca_bundle_path.as_deref()));
    errors
}

fn policies(authz: &Authz) -> Option<FieldError> {
    match &*authz.type_ {
        Authz::CEDAR if authz.policies.is_empty() => Some(missing("policies")),
        Authz::CEDAR | "none" => None,
        other => Some(FieldError::new("type", format!("{other:?} must be cedar or none"))),
    }
}

/// The path of a file with certificates.
pub(super) fn ca_bundle(path: Option<&str>) -> Option<FieldError> {
    let path = path.filter(|path| !path.is_empty())?;
    let is_plain = path.starts_with('/') && !path.contains('\0') && !path.split('/').any(|step| step == "..");
    (!is_plain).then(|| FieldError::new("caBundlePath", "must be an absolute path without .."))
}

pub(super) fn outgoing(auth: &OutgoingAuth) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !matches!(&*auth.source, "inline" | "discovered") {
        errors.push(FieldError::new("source", format!("{:?} must be inline or discovered", auth.source)));
    }
    let default = auth.default.iter().map(|strategy| (FieldPath::from("default"), strategy));
    let each = auth.backends.iter().map(|(name, strategy)| (FieldPath::from("backends").key(name), strategy));
    for (field, strategy) in default.chain(each) {
        errors.extend(strategy_errors(strategy).into_iter().map(|error| error.within(field.clone())));
    }
    errors
}

/// The block that the type needs, and what the block needs.
fn strategy_errors(strategy: &BackendAuthStrategy) -> Vec<FieldError> {
    let fields = |block: &'static str, fields: &[(&'static str, &str)]| -> Vec<FieldError> {
        let empty = fields.iter().filter(|(_, value)| value.is_empty());
        empty.map(|(field, _)| missing(field).within(block)).collect()
    };
    let absent = |block: &'static str| vec![FieldError::new(block, "is required for this type")];
    match &*strategy.type_ {
        BackendAuthStrategy::UNAUTHENTICATED => Vec::new(),
        "header_injection" => strategy.header_injection.as_ref().map_or_else(
            || absent("headerInjection"),
            |header| {
                let mut errors = fields("headerInjection", &[("headerName", &header.header_name)]);
                if header.header_value.is_some() == header.header_value_env.is_some() {
                    let message = "or headerValueEnv must be set, and not both";
                    errors.push(FieldError::new("headerInjection.headerValue", message));
                }
                errors
            },
        ),
        "token_exchange" => strategy.token_exchange.as_ref().map_or_else(
            || absent("tokenExchange"),
            |block| fields("tokenExchange", &[("tokenUrl", &block.token_url)]),
        ),
        "upstream_inject" => strategy.upstream_inject.as_ref().map_or_else(
            || absent("upstreamInject"),
            |block| fields("upstreamInject", &[("providerName", &block.provider_name)]),
        ),
        "aws_sts" => strategy
            .aws_sts
            .as_ref()
            .map_or_else(|| absent("awsSts"), |block| fields("awsSts", &[("region", &block.region)])),
        "obo" => strategy
            .obo
            .as_ref()
            .map_or_else(|| absent("obo"), |block| fields("obo", &[("tokenUrl", &block.token_url)])),
        "xaa" => strategy.xaa.as_ref().map_or_else(
            || absent("xaa"),
            |block| {
                fields(
                    "xaa",
                    &[("idpTokenUrl", &block.idp_token_url), ("targetTokenUrl", &block.target_token_url)],
                )
            },
        ),
        other => vec![FieldError::new(
            "type",
            format!(
                "{other:?} must be unauthenticated, header_injection, token_exchange, upstream_inject, aws_sts, obo or xaa"
            ),
        )],
    }
}
