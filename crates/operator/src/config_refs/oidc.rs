//! MCPOIDCConfig: whose tokens a proxy accepts.

use std::sync::Arc;

use skep_api::{
    conditions::{OIDCConfigRefValidated, Valid},
    kinds::{InlineOidc, KubernetesServiceAccountOidc, MCPOIDCConfig, MCPOIDCConfigSpec, OidcSource},
    refs::{OidcConfigRef, SecretKeyRef},
    vmcp,
};
use skep_config::{FieldError, FieldPath, env, paths, run_config::Oidc};
use skep_converge::Finalizer;
use skep_world::{ReadError, Reader};

use super::{
    ConfigRef, RefReasons,
    ca_bundle::{self, CaBundle},
    checks, flag, non_empty, or_empty,
};
use crate::{
    build::{EnvList, Identity, Volumes},
    config_controller::Config,
    reconcile::{Condition, Validation},
    resources::{ConfigMaps, Keys},
};

const CA_VOLUME: &str = "oidc-ca-bundle-";

impl Config for MCPOIDCConfig {
    const CONFIG_FINALIZER: Finalizer = Finalizer("mcpoidcconfig.toolhive.stacklok.dev/finalizer");
    const VALID: Valid = Valid::ConfigValid;

    fn check(spec: &MCPOIDCConfigSpec) -> Vec<FieldError> {
        let type_ = spec.type_.as_str();
        let fields = [
            (OidcSource::KubernetesServiceAccount, spec.kubernetes_service_account.is_some()),
            (OidcSource::Inline, spec.inline.is_some()),
        ];
        let mut errors = Vec::new();
        for (field, is_set) in fields {
            if field == spec.type_ && !is_set {
                errors.push(FieldError::new(field.as_str(), format!("is required with type {type_}")));
            } else if field != spec.type_ && is_set {
                let message = format!("does not apply to type {type_}: remove it");
                errors.push(FieldError::new(field.as_str(), message));
            }
        }
        errors.extend(spec.inline.iter().flat_map(|inline| checks::within("inline", check_inline(inline))));
        errors
    }

    fn invalid() -> Valid {
        Valid::ConfigInvalid
    }
}

fn check_inline(inline: &InlineOidc) -> Vec<FieldError> {
    let plain_http = flag(inline.insecure_allow_http);
    let urls = [
        ("issuer", Some(inline.issuer.as_str()).filter(|issuer| !issuer.is_empty())),
        ("jwksUrl", non_empty(&inline.jwks_url)),
        ("introspectionUrl", non_empty(&inline.introspection_url)),
    ];
    let mut errors = Vec::new();
    if urls.iter().all(|(_, url)| url.is_none()) {
        errors.push(FieldError::new("issuer", "is required to validate tokens"));
    }
    for (field, url) in urls {
        let checked = url.map(|url| checks::secure_url(field, url, plain_http, "inline.insecureAllowHTTP"));
        errors.extend(checked.and_then(Result::err));
    }
    if let Some(secret) = &inline.client_secret_ref {
        errors.extend(checks::secret("clientSecretRef", secret).err());
    }
    if let Some(bundle) = &inline.ca_bundle_ref {
        errors.extend(ca_bundle::check("caBundleRef", bundle).err());
    }
    errors
}

impl ConfigRef<OidcConfigRef> {
    pub(crate) fn validate(&self, validation: &mut Validation) {
        use OIDCConfigRefValidated::{OIDCConfigRefNotFound, OIDCConfigRefNotValid, OIDCConfigRefValid};
        let reasons = RefReasons::new(OIDCConfigRefValid, OIDCConfigRefNotFound, OIDCConfigRefNotValid);
        self.validate_as(reasons, validation);
    }

    /// How the workload validates tokens. Its client secret is in the environment: see
    /// [`add_env`](Self::add_env).
    pub(crate) fn oidc(&self, identity: &Identity, port: i32) -> Option<Oidc> {
        let (field, config) = self.found()?;
        let source = match (&config.spec.inline, &config.spec.kubernetes_service_account) {
            (Some(inline), _) => inline_oidc(inline),
            (None, Some(account)) => cluster_oidc(account),
            (None, None) => cluster_oidc(&KubernetesServiceAccountOidc::default()),
        };
        Some(Oidc {
            audience: field.audience.clone(),
            resource_url: resource_url(field, identity, port),
            scopes: field.scopes.clone(),
            ..source
        })
    }

    /// The part of a virtual MCP server's file for these settings.
    pub(crate) fn of_virtual_server(&self, oidc: &Oidc) -> vmcp::Oidc {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        vmcp::Oidc {
            issuer: oidc.issuer.clone(),
            client_id: oidc.client_id.clone(),
            client_secret_env: self.client_secret().map(|_| env::VMCP_OIDC_CLIENT_SECRET.to_owned()),
            audience: oidc.audience.clone(),
            resource: text(&oidc.resource_url),
            jwks_url: text(&oidc.jwks_url),
            introspection_url: text(&oidc.introspection_url),
            scopes: oidc.scopes.clone(),
            protected_resource_allow_private_ip: self
                .inline()
                .and_then(|inline| inline.protected_resource_allow_private_ip)
                .filter(|allowed| *allowed),
            jwks_allow_private_ip: oidc.allow_private_ip.then_some(true),
            insecure_allow_http: oidc.insecure_allow_http.then_some(true),
            ca_bundle_path: text(&oidc.ca_cert_path),
        }
    }

    /// The Secret key with the client secret, with the field that refers to it.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (FieldPath, &SecretKeyRef)> {
        self.client_secret().map(|secret| (self.path.clone(), secret)).into_iter()
    }

    /// Adds the client secret as this variable.
    pub(crate) fn add_env(&self, variable: &str, variables: &mut EnvList) {
        if let Some(secret) = self.client_secret() {
            variables.set_from_secret(variable, secret);
        }
    }

    /// Adds the certificates.
    pub(crate) fn add_volumes(&self, volumes: &mut Volumes) {
        if let Some(bundle) = self.ca_bundle() {
            bundle.add_volume(paths::CERTS_FOLDER, CA_VOLUME, volumes);
        }
    }

    /// The keys of the ConfigMap with the certificates, if that exists.
    pub(crate) async fn certificates(
        &self,
        reader: &mut Reader,
    ) -> Result<Option<Arc<Keys<ConfigMaps>>>, ReadError> {
        match self.ca_bundle() {
            Some(bundle) => bundle.keys(reader).await,
            None => Ok(None),
        }
    }

    /// The condition about the ConfigMap with the certificates. Pods wait for one that does not exist, so
    /// this is not a problem.
    pub(crate) fn ca_bundle_condition(&self, certificates: Option<&Keys<ConfigMaps>>) -> Option<Condition> {
        let (reason, message) = self.ca_bundle()?.state(certificates);
        Some(Condition::new(reason, message))
    }

    fn inline(&self) -> Option<&InlineOidc> {
        self.config()?.spec.inline.as_ref()
    }

    fn client_secret(&self) -> Option<&SecretKeyRef> {
        self.inline()?.client_secret_ref.as_ref()
    }

    /// The certificates of the provider, if it has a private authority.
    fn ca_bundle(&self) -> Option<CaBundle<'_>> {
        CaBundle::new(self.inline()?.ca_bundle_ref.as_ref())
    }
}

/// The address that clients use for a workload. No Service has the name of the default: where it is set, the proxy gives each
/// client the address that it used. The text stays as it is, since a change of it would replace pods.
fn resource_url(reference: &OidcConfigRef, identity: &Identity, port: i32) -> String {
    let Identity { name, namespace, .. } = identity;
    let default = || format!("http://{name}.{namespace}.svc.cluster.local:{port}");
    non_empty(&reference.resource_url).map_or_else(default, Into::into)
}

fn cluster_oidc(account: &KubernetesServiceAccountOidc) -> Oidc {
    // Without an issuer, a proxy would accept the tokens of any.
    let issuer = match account.issuer() {
        "" => KubernetesServiceAccountOidc::default().issuer().to_owned(),
        issuer => issuer.to_owned(),
    };
    let uses_cluster_auth = account.use_cluster_auth();
    let file = |path: &str| if uses_cluster_auth { path.to_owned() } else { String::new() };
    Oidc {
        issuer,
        jwks_url: or_empty(&account.jwks_url),
        introspection_url: or_empty(&account.introspection_url),
        ca_cert_path: file(paths::CLUSTER_CA),
        auth_token_file: file(paths::CLUSTER_TOKEN),
        allow_private_ip: uses_cluster_auth,
        ..Oidc::default()
    }
}

fn inline_oidc(inline: &InlineOidc) -> Oidc {
    let bundle = CaBundle::new(inline.ca_bundle_ref.as_ref());
    Oidc {
        issuer: inline.issuer.clone(),
        jwks_url: or_empty(&inline.jwks_url),
        introspection_url: or_empty(&inline.introspection_url),
        client_id: or_empty(&inline.client_id),
        ca_cert_path: bundle.map(|bundle| bundle.path(paths::CERTS_FOLDER)).unwrap_or_default(),
        auth_token_file: or_empty(&inline.jwks_auth_token_path),
        allow_private_ip: flag(inline.jwks_allow_private_ip),
        insecure_allow_http: flag(inline.insecure_allow_http),
        ..Oidc::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config_refs::samples::{fields, identity, mounts, resolved, sample, variables};

    fn inline(fields: Value) -> MCPOIDCConfigSpec {
        sample(json!({"type": "inline", "inline": fields}))
    }

    fn reference(field: Value, spec: MCPOIDCConfigSpec) -> ConfigRef<OidcConfigRef> {
        resolved(sample(field), MCPOIDCConfig::new("idp", spec))
    }

    #[test]
    fn addresses_are_urls_of_https_unless_a_flag_allows_http() {
        let issuer = "https://login.example";
        assert_eq!(MCPOIDCConfig::check(&inline(json!({"issuer": issuer}))), []);
        for (field, fields) in [
            ("inline.issuer: \"login\"", json!({"issuer": "login"})),
            ("inline.issuer: \"http://l.example\"", json!({"issuer": "http://l.example"})),
            ("inline.jwksUrl: \"/keys\"", json!({"issuer": issuer, "jwksUrl": "/keys"})),
            ("inline.introspectionUrl: \"x:y\"", json!({"issuer": issuer, "introspectionUrl": "x:y"})),
        ] {
            let errors = MCPOIDCConfig::check(&inline(fields));
            let [only] = errors.as_slice() else { panic!("{errors:?}") };
            assert!(only.to_string().starts_with(field), "{only}");
        }
        let plain = json!({"issuer": "http://l.example", "insecureAllowHTTP": true});
        assert_eq!(MCPOIDCConfig::check(&inline(plain)), []);
    }

    #[test]
    fn an_address_of_keys_replaces_the_issuer() {
        assert_eq!(
            MCPOIDCConfig::check(&inline(json!({"issuer": "", "jwksUrl": "https://l.example/keys"}))),
            []
        );
        assert_eq!(fields(&MCPOIDCConfig::check(&inline(json!({"issuer": ""})))), ["inline.issuer"]);
    }

    #[test]
    fn every_mistake_is_reported() {
        let spec = inline(json!({
            "issuer": "login", "jwksUrl": "http://l.example", "clientSecretRef": {"name": "", "key": "k"},
            "caBundleRef": {"configMapRef": {"name": "corp.ca", "key": ""}},
        }));
        let expected = [
            "inline.issuer",
            "inline.jwksUrl",
            "inline.clientSecretRef.name",
            "inline.caBundleRef.configMapRef.name",
        ];
        assert_eq!(fields(&MCPOIDCConfig::check(&spec)), expected);
    }

    #[test]
    fn the_type_and_its_fields_belong_together() {
        let both = json!({"issuer": "https://a.example"});
        for (written, field) in [
            (json!({"type": "inline"}), "inline"),
            (json!({"type": "kubernetesServiceAccount"}), "kubernetesServiceAccount"),
            (
                json!({"type": "inline", "inline": both, "kubernetesServiceAccount": {}}),
                "kubernetesServiceAccount",
            ),
        ] {
            assert_eq!(fields(&MCPOIDCConfig::check(&sample(written.clone()))), [field], "{written}");
        }
    }

    #[test]
    fn the_issuer_of_the_cluster_is_called_with_its_own_certificates_and_token() {
        let spec = sample(json!({"type": "kubernetesServiceAccount", "kubernetesServiceAccount": {}}));
        let reference = reference(json!({"name": "cluster", "audience": "crm"}), spec);
        let expected = Oidc {
            issuer: "https://kubernetes.default.svc".into(),
            audience: "crm".into(),
            ca_cert_path: paths::CLUSTER_CA.into(),
            auth_token_file: paths::CLUSTER_TOKEN.into(),
            allow_private_ip: true,
            resource_url: "http://crm.team.svc.cluster.local:8080".into(),
            ..Oidc::default()
        };
        assert_eq!(reference.oidc(&identity("team", "crm"), 8080), Some(expected));
    }

    #[test]
    fn the_issuer_of_the_cluster_can_be_called_like_any_other() {
        let account = json!({"useClusterAuth": false, "issuer": "https://cluster.example"});
        let spec = sample(json!({"type": "kubernetesServiceAccount", "kubernetesServiceAccount": account}));
        let reference = reference(json!({"name": "cluster", "audience": "crm"}), spec);
        let oidc = reference.oidc(&identity("team", "crm"), 8080).unwrap();
        assert_eq!((oidc.issuer.as_str(), oidc.ca_cert_path.as_str()), ("https://cluster.example", ""));
        assert!(!oidc.allow_private_ip);
    }

    #[test]
    fn the_fields_of_a_provider_are_passed_on() {
        let spec = inline(json!({
            "issuer": "https://login.example", "jwksUrl": "https://login.example/keys",
            "introspectionUrl": "https://login.example/introspect", "clientId": "proxy",
            "clientSecretRef": {"name": "idp", "key": "secret"},
            "caBundleRef": {"configMapRef": {"name": "corp-ca", "key": "root.pem"}},
            "jwksAuthTokenPath": "/token", "jwksAllowPrivateIP": true, "insecureAllowHTTP": true,
        }));
        let field = json!({
            "name": "idp", "audience": "crm", "scopes": ["read"], "resourceUrl": "https://mcp.example/crm",
        });
        let reference = reference(field, spec);
        let expected = Oidc {
            issuer: "https://login.example".into(),
            audience: "crm".into(),
            jwks_url: "https://login.example/keys".into(),
            client_id: "proxy".into(),
            client_secret: String::new(),
            ca_cert_path: "/config/certs/corp-ca/root.pem".into(),
            auth_token_file: "/token".into(),
            allow_private_ip: true,
            insecure_allow_http: true,
            introspection_url: "https://login.example/introspect".into(),
            resource_url: "https://mcp.example/crm".into(),
            scopes: vec!["read".into()],
        };
        assert_eq!(reference.oidc(&identity("team", "crm"), 8080), Some(expected));
        assert_eq!(
            variables(|list| reference.add_env(env::OIDC_CLIENT_SECRET, list)),
            ["TOOLHIVE_OIDC_CLIENT_SECRET<idp/secret"]
        );
        let mounted = ["oidc-ca-bundle-corp-ca /config/certs/corp-ca"];
        assert_eq!(mounts(|volumes| reference.add_volumes(volumes)), mounted);
    }
}
