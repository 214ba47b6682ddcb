//! MCPExternalAuthConfig: how a proxy authenticates to its upstream.

mod references;

use skep_api::{
    external_auth::{self, token_type},
    kinds::{ExternalAuthType, MCPExternalAuthConfig, MCPExternalAuthConfigSpec},
    refs::SecretKeyRef,
    strategy::on_behalf_of_errors,
};
use skep_config::{
    FieldError, FieldPath,
    run_config::{AwsSts, HeaderStrategy, RoleMapping, TokenExchange},
};
use skep_converge::Finalizer;

use super::{auth_server, checks, non_empty, or_empty};
use crate::{config_controller::Config, reconcile::Condition};
pub(crate) use references::ExternalAuth;

impl Config for MCPExternalAuthConfig {
    const CONFIG_FINALIZER: Finalizer = Finalizer("mcpexternalauthconfig.toolhive.stacklok.dev/finalizer");

    fn check(spec: &MCPExternalAuthConfigSpec) -> Vec<FieldError> {
        let mut errors = check_type(spec);
        if let Some(exchange) = &spec.token_exchange {
            errors.extend(checks::url("tokenExchange.tokenUrl", &exchange.token_url).err());
        }
        if let Some(sts) = &spec.aws_sts {
            errors.extend(checks::within("awsSts", check_aws_sts(sts)));
        }
        if let Some(flow) = &spec.obo {
            errors.extend(checks::within("obo", on_behalf_of_errors(flow)));
        }
        let secrets = named_secrets(spec).into_iter();
        errors.extend(secrets.filter_map(|(field, secret)| checks::secret(field, secret).err()));
        if let Some(server) = &spec.embedded_auth_server {
            errors.extend(checks::within("embeddedAuthServer", auth_server::check(server)));
        }
        errors
    }

    fn further_conditions(spec: &MCPExternalAuthConfigSpec) -> Vec<Condition> {
        spec.embedded_auth_server.as_ref().map(auth_server::identity_synthesized).into_iter().collect()
    }
}

/// Checks that the field of the type alone is set.
fn check_type(spec: &MCPExternalAuthConfigSpec) -> Vec<FieldError> {
    let fields = [
        (ExternalAuthType::TokenExchange, spec.token_exchange.is_some()),
        (ExternalAuthType::HeaderInjection, spec.header_injection.is_some()),
        (ExternalAuthType::BearerToken, spec.bearer_token.is_some()),
        (ExternalAuthType::EmbeddedAuthServer, spec.embedded_auth_server.is_some()),
        (ExternalAuthType::AwsSts, spec.aws_sts.is_some()),
        (ExternalAuthType::UpstreamInject, spec.upstream_inject.is_some()),
        (ExternalAuthType::Obo, spec.obo.is_some()),
        (ExternalAuthType::Xaa, spec.xaa.is_some()),
    ];
    let type_ = spec.type_.as_str();
    let wrong = fields.iter().filter(|(field, is_set)| *is_set != (*field == spec.type_));
    wrong
        .map(|(field, is_set)| {
            let message = if *is_set {
                format!("does not apply to type {type_}: remove it")
            } else {
                format!("is required with type {type_}")
            };
            FieldError::new(field.as_str(), message)
        })
        .collect()
}

fn check_aws_sts(sts: &external_auth::AwsSts) -> Vec<FieldError> {
    if sts.role_mappings.is_empty() && non_empty(&sts.fallback_role_arn).is_none() {
        return vec![FieldError::new("", "no caller gets a role: set roleMappings, fallbackRoleArn or both")];
    }
    let mappings = sts.role_mappings.iter().enumerate();
    mappings
        .filter_map(|(index, mapping)| {
            let field = FieldPath::from("roleMappings").index(index);
            match (non_empty(&mapping.claim), non_empty(&mapping.matcher)) {
                (Some(_), None) => None,
                (None, Some(matcher)) => checks::matcher(field.join("matcher"), matcher).err(),
                _ => Some(FieldError::new(field, "set either claim or matcher")),
            }
        })
        .collect()
}

fn token_exchange(exchange: &external_auth::TokenExchange) -> TokenExchange {
    let header = or_empty(&exchange.external_token_header_name);
    let strategy = if header.is_empty() { HeaderStrategy::Replace } else { HeaderStrategy::Custom };
    TokenExchange {
        token_url: exchange.token_url.clone(),
        client_id: or_empty(&exchange.client_id),
        client_secret: String::new(),
        audience: exchange.audience.clone(),
        scopes: exchange.scopes.clone(),
        subject_token_type: non_empty(&exchange.subject_token_type).map(token_type).unwrap_or_default(),
        header_strategy: Some(strategy),
        external_token_header_name: header,
    }
}

fn aws_sts(sts: &external_auth::AwsSts) -> AwsSts {
    let mappings = sts.role_mappings.iter().map(|mapping| RoleMapping {
        claim: or_empty(&mapping.claim),
        matcher: or_empty(&mapping.matcher),
        role_arn: mapping.role_arn.clone(),
        priority: mapping.priority,
    });
    AwsSts {
        region: sts.region.clone(),
        service: sts.service().into(),
        fallback_role_arn: or_empty(&sts.fallback_role_arn),
        role_mappings: mappings.collect(),
        role_claim: sts.role_claim().into(),
        session_duration: u32::try_from(sts.session_duration()).unwrap_or_default(),
        session_name_claim: sts.session_name_claim().into(),
        subject_provider_name: String::new(),
    }
}

fn named_secrets(spec: &MCPExternalAuthConfigSpec) -> Vec<(&'static str, &SecretKeyRef)> {
    let (exchange, xaa) = (spec.token_exchange.as_ref(), spec.xaa.as_ref());
    let secrets = [
        ("tokenExchange.clientSecretRef", exchange.and_then(|exchange| exchange.client_secret_ref.as_ref())),
        (
            "headerInjection.valueSecretRef",
            spec.header_injection.as_ref().map(|header| &header.value_secret_ref),
        ),
        ("bearerToken.tokenSecretRef", spec.bearer_token.as_ref().map(|bearer| &bearer.token_secret_ref)),
        ("xaa.idpClientSecretRef", xaa.and_then(|xaa| xaa.idp_client_secret_ref.as_ref())),
        ("xaa.targetClientSecretRef", xaa.and_then(|xaa| xaa.target_client_secret_ref.as_ref())),
        ("obo.clientSecretRef", spec.obo.as_ref().and_then(|obo| obo.client_secret_ref.as_ref())),
    ];
    secrets.into_iter().filter_map(|(field, secret)| Some((field, secret?))).collect()
}

#[cfg(test)]
mod tests;
