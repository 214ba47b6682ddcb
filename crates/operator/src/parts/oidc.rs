//! MCPOIDCConfig: whose tokens a proxy accepts.

use skep_api::{
    kinds::{InlineOidc, KubernetesServiceAccountOidc, MCPOIDCConfigSpec, OidcSource},
    refs::{OidcConfigRef, SecretKeyRef},
};
use skep_config::{env, paths, run_config::Oidc, vmcp};

use super::{
    ca_bundle::{self, CaBundle},
    checks, flag, said, text,
};
use crate::build::{EnvList, Identity, Volumes};

const CA_VOLUME: &str = "oidc-ca-bundle-";

/// What is wrong with the object by itself.
pub(crate) fn check(spec: &MCPOIDCConfigSpec) -> Result<(), String> {
    match (spec.type_, &spec.kubernetes_service_account, &spec.inline) {
        (OidcSource::KubernetesServiceAccount, Some(_), None) => Ok(()),
        (OidcSource::Inline, None, Some(inline)) => check_inline(inline),
        (type_, ..) => {
            let type_ = type_.as_str();
            Err(format!("{type_}: set it, as type is {type_}, and leave out what belongs to other types"))
        }
    }
}

fn check_inline(inline: &InlineOidc) -> Result<(), String> {
    let plain_http = flag(inline.insecure_allow_http);
    let urls = [
        ("inline.issuer", Some(inline.issuer.as_str()).filter(|issuer| !issuer.is_empty())),
        ("inline.jwksUrl", said(&inline.jwks_url)),
        ("inline.introspectionUrl", said(&inline.introspection_url)),
    ];
    if urls.iter().all(|(_, url)| url.is_none()) {
        return Err("inline.issuer: set it, so that tokens can be checked".into());
    }
    for (field, url) in urls {
        if let Some(url) = url {
            checks::secure_url(field, url, plain_http, "inline.insecureAllowHTTP")?;
        }
    }
    if let Some(secret) = &inline.client_secret_ref {
        checks::secret("inline.clientSecretRef", secret)?;
    }
    inline.ca_bundle_ref.as_ref().map_or(Ok(()), |bundle| ca_bundle::check("inline.caBundleRef", bundle))
}

/// How the proxy of a workload checks tokens. The secret of its client is in the environment: see [`add_env`].
pub(crate) fn oidc(
    spec: &MCPOIDCConfigSpec,
    reference: &OidcConfigRef,
    identity: &Identity,
    port: i32,
) -> Oidc {
    let checked = match (&spec.inline, &spec.kubernetes_service_account) {
        (Some(inline), _) => by_provider(inline),
        (None, Some(account)) => by_cluster(account),
        (None, None) => by_cluster(&KubernetesServiceAccountOidc::default()),
    };
    Oidc {
        audience: reference.audience.clone(),
        resource_url: resource_url(reference, identity, port),
        scopes: reference.scopes.clone(),
        ..checked
    }
}

/// The address that clients know a workload by. The default is one that only the cluster could resolve, and even there
/// it is only a name: tokens were issued for it, so it stays.
fn resource_url(reference: &OidcConfigRef, identity: &Identity, port: i32) -> String {
    let Identity { name, namespace, .. } = identity;
    let default = || format!("http://{name}.{namespace}.svc.cluster.local:{port}");
    said(&reference.resource_url).map_or_else(default, Into::into)
}

fn by_cluster(account: &KubernetesServiceAccountOidc) -> Oidc {
    // Without an issuer, a proxy would take tokens of any.
    let issuer = match account.issuer() {
        "" => KubernetesServiceAccountOidc::default().issuer().to_owned(),
        issuer => issuer.to_owned(),
    };
    let by_itself = account.use_cluster_auth();
    let file = |path: &str| if by_itself { path.to_owned() } else { String::new() };
    Oidc {
        issuer,
        jwks_url: text(&account.jwks_url),
        introspection_url: text(&account.introspection_url),
        ca_cert_path: file(paths::CLUSTER_CA),
        auth_token_file: file(paths::CLUSTER_TOKEN),
        allow_private_ip: by_itself,
        ..Oidc::default()
    }
}

fn by_provider(inline: &InlineOidc) -> Oidc {
    let bundle = CaBundle::new(inline.ca_bundle_ref.as_ref());
    Oidc {
        issuer: inline.issuer.clone(),
        jwks_url: text(&inline.jwks_url),
        introspection_url: text(&inline.introspection_url),
        client_id: text(&inline.client_id),
        ca_cert_path: bundle.map(|bundle| bundle.path(paths::CERTS_FOLDER)).unwrap_or_default(),
        auth_token_file: text(&inline.jwks_auth_token_path),
        allow_private_ip: flag(inline.jwks_allow_private_ip),
        insecure_allow_http: flag(inline.insecure_allow_http),
        ..Oidc::default()
    }
}

/// The certificates of the provider, if it has a private authority.
pub(crate) fn ca_bundle(spec: &MCPOIDCConfigSpec) -> Option<CaBundle<'_>> {
    CaBundle::new(spec.inline.as_ref()?.ca_bundle_ref.as_ref())
}

/// The Secrets that must be there.
pub(crate) fn secrets(spec: &MCPOIDCConfigSpec) -> Vec<&SecretKeyRef> {
    spec.inline.iter().filter_map(|inline| inline.client_secret_ref.as_ref()).collect()
}

/// Adds the secret of the client.
pub(crate) fn add_env(spec: &MCPOIDCConfigSpec, variables: &mut EnvList) {
    for secret in secrets(spec) {
        variables.set_from_secret(env::OIDC_CLIENT_SECRET, secret);
    }
}

/// How a virtual MCP server checks tokens: as a proxy does. The secret of its client is in the environment.
pub(crate) fn of_virtual_server(spec: &MCPOIDCConfigSpec, oidc: &Oidc) -> vmcp::Oidc {
    let secret = secrets(spec).first().map(|_| env::VMCP_OIDC_CLIENT_SECRET.to_owned());
    let inline = spec.inline.as_ref();
    vmcp::Oidc {
        issuer: oidc.issuer.clone(),
        client_id: oidc.client_id.clone(),
        client_secret_env: secret.unwrap_or_default(),
        audience: oidc.audience.clone(),
        resource: oidc.resource_url.clone(),
        jwks_url: oidc.jwks_url.clone(),
        introspection_url: oidc.introspection_url.clone(),
        scopes: oidc.scopes.clone(),
        protected_resource_allow_private_ip: inline
            .is_some_and(|inline| flag(inline.protected_resource_allow_private_ip)),
        jwks_allow_private_ip: oidc.allow_private_ip,
        insecure_allow_http: oidc.insecure_allow_http,
        ca_bundle_path: oidc.ca_cert_path.clone(),
    }
}

/// Adds the certificates.
pub(crate) fn add_volumes(spec: &MCPOIDCConfigSpec, volumes: &mut Volumes) {
    if let Some(bundle) = ca_bundle(spec) {
        bundle.add_volume(paths::CERTS_FOLDER, CA_VOLUME, volumes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::parts::samples::{identity, mounts, sample, variables};

    fn inline(fields: Value) -> MCPOIDCConfigSpec {
        sample(json!({"type": "inline", "inline": fields}))
    }

    fn reference(fields: Value) -> OidcConfigRef {
        sample(fields)
    }

    #[test]
    fn addresses_are_urls_and_encrypted_unless_a_flag_says_otherwise() {
        let issuer = "https://login.example";
        assert_eq!(check(&inline(json!({"issuer": issuer}))), Ok(()));
        for (field, fields) in [
            ("inline.issuer: \"login\"", json!({"issuer": "login"})),
            ("inline.issuer: \"http://l.example\"", json!({"issuer": "http://l.example"})),
            ("inline.jwksUrl: \"/keys\"", json!({"issuer": issuer, "jwksUrl": "/keys"})),
            ("inline.introspectionUrl: \"x:y\"", json!({"issuer": issuer, "introspectionUrl": "x:y"})),
        ] {
            let error = check(&inline(fields)).unwrap_err();
            assert!(error.starts_with(field), "{error}");
        }
        let plain = json!({"issuer": "http://l.example", "insecureAllowHTTP": true});
        assert_eq!(check(&inline(plain)), Ok(()));
    }

    #[test]
    fn keys_alone_do_but_nothing_at_all_does_not() {
        assert_eq!(check(&inline(json!({"issuer": "", "jwksUrl": "https://l.example/keys"}))), Ok(()));
        assert!(check(&inline(json!({"issuer": ""}))).is_err());
    }

    #[test]
    fn the_type_and_its_fields_belong_together() {
        for wrong in [
            json!({"type": "inline"}),
            json!({"type": "kubernetesServiceAccount"}),
            json!({"type": "inline", "inline": {"issuer": "https://a.example"}, "kubernetesServiceAccount": {}}),
        ] {
            assert!(check(&sample(wrong.clone())).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_cluster_is_asked_with_its_own_certificates_and_token() {
        let spec = sample(json!({"type": "kubernetesServiceAccount", "kubernetesServiceAccount": {}}));
        let reference = reference(json!({"name": "cluster", "audience": "crm"}));
        let expected = Oidc {
            issuer: "https://kubernetes.default.svc".into(),
            audience: "crm".into(),
            ca_cert_path: paths::CLUSTER_CA.into(),
            auth_token_file: paths::CLUSTER_TOKEN.into(),
            allow_private_ip: true,
            resource_url: "http://crm.team.svc.cluster.local:8080".into(),
            ..Oidc::default()
        };
        assert_eq!(oidc(&spec, &reference, &identity("team", "crm"), 8080), expected);
    }

    #[test]
    fn the_cluster_can_be_asked_like_any_other_issuer() {
        let account = json!({"useClusterAuth": false, "issuer": "https://cluster.example"});
        let spec = sample(json!({"type": "kubernetesServiceAccount", "kubernetesServiceAccount": account}));
        let reference = reference(json!({"name": "cluster", "audience": "crm"}));
        let oidc = oidc(&spec, &reference, &identity("team", "crm"), 8080);
        assert_eq!((oidc.issuer.as_str(), oidc.ca_cert_path.as_str()), ("https://cluster.example", ""));
        assert!(!oidc.allow_private_ip);
    }

    #[test]
    fn a_provider_is_taken_as_it_is_written() {
        let spec = inline(json!({
            "issuer": "https://login.example", "jwksUrl": "https://login.example/keys",
            "introspectionUrl": "https://login.example/introspect", "clientId": "proxy",
            "clientSecretRef": {"name": "idp", "key": "secret"},
            "caBundleRef": {"configMapRef": {"name": "corp-ca", "key": "root.pem"}},
            "jwksAuthTokenPath": "/token", "jwksAllowPrivateIP": true, "insecureAllowHTTP": true,
        }));
        let reference = reference(json!({
            "name": "idp", "audience": "crm", "scopes": ["read"], "resourceUrl": "https://mcp.example/crm",
        }));
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
        assert_eq!(oidc(&spec, &reference, &identity("team", "crm"), 8080), expected);
        assert_eq!(variables(|list| add_env(&spec, list)), ["TOOLHIVE_OIDC_CLIENT_SECRET<idp/secret"]);
        let mounted = ["oidc-ca-bundle-corp-ca /config/certs/corp-ca"];
        assert_eq!(mounts(|volumes| add_volumes(&spec, volumes)), mounted);
    }
}
