use serde_json::{Value, json};

use super::*;
use crate::config_refs::samples::{fields, identity, mounts, sample, variables};

const RESOURCE: &str = "https://mcp.example/notes";

fn secret(key: &str) -> Value {
    json!({"name": "keys", "key": key})
}

/// A server with one provider, and further fields.
fn server(fields: Value) -> EmbeddedAuthServer {
    let provider = json!({
        "name": "corp-idp", "type": "oidc", "oidcConfig": {"issuerUrl": "https://idp.example", "clientId": "mcp"},
    });
    let mut written = json!({"issuer": "https://as.example", "upstreamProviders": [provider]});
    written.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    sample(written)
}

fn oidc() -> Oidc {
    Oidc {
        issuer: "https://as.example".into(),
        audience: RESOURCE.into(),
        resource_url: RESOURCE.into(),
        ..Oidc::default()
    }
}

/// The part of a server, as it is in the file.
fn part(fields: Value) -> Value {
    let built = auth_server(&server(fields), Some(&oidc()), &identity("team", "notes")).unwrap();
    serde_json::to_value(built).unwrap()
}

fn provider(type_: &str, fields: Value) -> Value {
    json!({"upstreamProviders": [{"name": "corp-idp", "type": type_, format!("{type_}Config"): fields}]})
}

#[test]
fn a_minimal_server_issues_tokens_for_the_workload() {
    let expected = json!({
        "schema_version": "v0.1.0",
        "issuer": "https://as.example",
        "upstreams": [{"name": "corp-idp", "type": "oidc", "oidc_config": {
            "issuer_url": "https://idp.example", "client_id": "mcp",
            "redirect_uri": "https://mcp.example/notes/oauth/callback",
        }}],
        "allowed_audiences": [RESOURCE],
    });
    assert_eq!(part(json!({})), expected);
}

#[test]
fn the_issuer_and_the_audience_of_tokens_are_those_that_the_proxy_expects() {
    let built = |oidc: Option<&Oidc>| auth_server(&server(json!({})), oidc, &identity("team", "notes"));
    for (oidc, error) in [
        (None, "oidcConfigRef: "),
        (Some(Oidc { resource_url: String::new(), ..oidc() }), "oidcConfigRef.resourceUrl: "),
        (Some(Oidc { audience: "notes".into(), ..oidc() }), "oidcConfigRef.audience: \"notes\" "),
        (
            Some(Oidc { issuer: "https://other.example".into(), ..oidc() }),
            "oidcConfigRef: accepts tokens of ",
        ),
        (Some(Oidc { issuer: String::new(), ..oidc() }), "oidcConfigRef: accepts tokens of "),
    ] {
        let message = built(oidc.as_ref()).unwrap_err().to_string();
        assert!(message.starts_with(error), "{message}");
    }
    let with_slash = Oidc { issuer: "https://as.example/".into(), ..oidc() };
    assert!(built(Some(&with_slash)).is_ok(), "a slash is no other issuer");
}

#[test]
fn the_redirect_uri_is_below_the_address_of_the_workload() {
    let oidc =
        Oidc { audience: "https://m.example/".into(), resource_url: "https://m.example/".into(), ..oidc() };
    let built = auth_server(&server(json!({})), Some(&oidc), &identity("team", "notes")).unwrap();
    let redirect = &built.upstreams[0].oidc_config.as_ref().unwrap().redirect_uri;
    assert_eq!(redirect, "https://m.example/oauth/callback");
}

#[test]
fn clients_learn_the_scopes_of_the_server() {
    let announced = |supported: &[&str], own: &[&str]| {
        let owned = |scopes: &[&str]| scopes.iter().map(|scope| (*scope).to_owned()).collect();
        let server = AuthServer { scopes_supported: owned(supported), ..AuthServer::default() };
        let mut oidc = Oidc { scopes: owned(own), ..oidc() };
        announce_scopes(&server, &mut oidc);
        oidc.scopes
    };
    assert_eq!(announced(&[], &[]), ["openid", "profile", "email", "offline_access"]);
    assert_eq!(announced(&["openid", "read"], &[]), ["openid", "read"]);
    assert_eq!(announced(&["openid", "read"], &["read"]), ["read"]);
}

#[test]
fn keys_are_files_and_the_first_one_signs() {
    let fields = json!({
        "signingKeySecretRefs": [secret("new"), secret("old")], "hmacSecretRefs": [secret("seal")],
    });
    let built = part(fields.clone());
    let keys = json!({
        "key_dir": "/etc/toolhive/authserver/keys", "signing_key_file": "key-0.pem", "fallback_key_files": ["key-1.pem"],
    });
    assert_eq!(built["signing_key_config"], keys);
    assert_eq!(built["hmac_secret_files"], json!(["/etc/toolhive/authserver/hmac/hmac-0"]));
    let mut volumes = Volumes::default();
    add_volumes(&server(fields.clone()), &mut volumes);
    let modes = volumes.volumes.iter().map(|volume| volume.secret.as_ref().unwrap().default_mode);
    assert!(modes.into_iter().all(|mode| mode == Some(0o400)));
    let expected = [
        "authserver-signing-key-0 /etc/toolhive/authserver/keys/key-0.pem",
        "authserver-signing-key-1 /etc/toolhive/authserver/keys/key-1.pem",
        "authserver-hmac-secret-0 /etc/toolhive/authserver/hmac/hmac-0",
    ];
    assert_eq!(mounts(|volumes| add_volumes(&server(fields), volumes)), expected);
}

#[test]
fn secrets_of_clients_are_variables() {
    let mut fields = provider(
        "oauth2",
        json!({
            "authorizationEndpoint": "https://idp.example/a", "tokenEndpoint": "https://idp.example/t",
            "dcrConfig": {"registrationEndpoint": "https://idp.example/r", "initialAccessTokenRef": secret("reg")},
            "identityFromToken": {"subjectPath": "user.id"}, "allowPrivateIPs": true,
        }),
    );
    let delegate = json!({
        "clientId": "agent", "clientSecretRef": secret("agent"), "scopes": ["openid"], "audiences": [RESOURCE],
    });
    fields["delegateClients"] = json!([delegate]);
    let built = part(fields.clone());
    let expected = json!({
        "authorization_endpoint": "https://idp.example/a", "token_endpoint": "https://idp.example/t",
        "redirect_uri": "https://mcp.example/notes/oauth/callback",
        "identity_from_token": {"subject_path": "user.id"},
        "dcr_config": {
            "registration_endpoint": "https://idp.example/r",
            "initial_access_token_env_var": "TOOLHIVE_UPSTREAM_DCR_INITIAL_ACCESS_TOKEN_CORP_IDP",
        },
        "allow_private_ips": true,
    });
    assert_eq!(built["upstreams"][0]["oauth2_config"], expected);
    assert_eq!(built["delegate_clients"][0]["client_secret_env_var"], "TOOLHIVE_DELEGATE_CLIENT_SECRET_0");
    assert_eq!(
        variables(|list| add_env(&server(fields), list)),
        [
            "TOOLHIVE_UPSTREAM_DCR_INITIAL_ACCESS_TOKEN_CORP_IDP<keys/reg",
            "TOOLHIVE_DELEGATE_CLIENT_SECRET_0<keys/agent",
        ]
    );
}

#[test]
fn the_keys_in_redis_have_the_namespace_and_name_of_the_workload() {
    let redis = json!({
        "sentinelConfig": {"masterName": "main", "sentinelService": {"name": "sentinel"}},
        "aclUserConfig": {"usernameSecretRef": secret("user"), "passwordSecretRef": secret("pass")},
        "tls": {"caCertSecretRef": secret("ca")}, "sentinelTls": {"insecureSkipVerify": true},
    });
    let fields = json!({"storage": {"type": "redis", "redis": redis}});
    let expected = json!({"type": "redis", "redis_config": {
        "sentinel_config": {
            "master_name": "main", "sentinel_addrs": ["sentinel.team.svc.cluster.local:26379"],
        },
        "auth_type": "aclUser",
        "acl_user_config": {
            "username_env_var": "TOOLHIVE_AUTH_SERVER_REDIS_USERNAME",
            "password_env_var": "TOOLHIVE_AUTH_SERVER_REDIS_PASSWORD",
        },
        "key_prefix": "thv:auth:{team:notes}:",
        "dial_timeout": "5s", "read_timeout": "3s", "write_timeout": "3s",
        "tls": {"ca_cert_file": "/etc/toolhive/authserver/redis-tls/ca.crt"},
        "sentinel_tls": {"insecure_skip_verify": true},
    }});
    assert_eq!(part(fields.clone())["storage"], expected);
    let server = server(fields);
    for (namespace, name) in [("team", "mail"), ("other", "notes")] {
        let built = auth_server(&server, Some(&oidc()), &identity(namespace, name)).unwrap();
        let prefix = built.storage.unwrap().redis_config.unwrap().key_prefix;
        assert_eq!(prefix, format!("thv:auth:{{{namespace}:{name}}}:"));
    }
    assert_eq!(
        variables(|list| add_env(&server, list)),
        ["TOOLHIVE_AUTH_SERVER_REDIS_USERNAME<keys/user", "TOOLHIVE_AUTH_SERVER_REDIS_PASSWORD<keys/pass"]
    );
    let mounted = ["redis-tls-ca-master /etc/toolhive/authserver/redis-tls/ca.crt"];
    assert_eq!(mounts(|volumes| add_volumes(&server, volumes)), mounted);
}

#[test]
fn memory_and_disabled_client_documents_add_nothing() {
    let built = part(json!({"storage": {"type": "memory"}, "cimd": {"enabled": false, "cacheMaxSize": 3}}));
    assert_eq!(built, part(json!({})));
}

#[test]
fn the_durations_of_trusted_issuers_have_gos_notation() {
    let built = part(json!({"trustedIssuers": [{
        "issuerUrl": "https://other.example",
        "jwtBearerGrant": {
            "maxAssertionAge": "5m", "subjectBindings": [{"subject": "ci", "allowedResources": [RESOURCE]}],
        },
    }]}));
    let expected = json!([{"issuer_url": "https://other.example", "jwt_bearer_grant": {
        "max_assertion_age": "5m0s", "subject_bindings": [{"subject": "ci", "allowed_resources": [RESOURCE]}],
    }}]);
    assert_eq!(built["trusted_issuers"], expected);
}

#[test]
fn clients_get_no_scope_or_audience_that_the_server_lacks() {
    let delegate = |scope: &str, audience: &str| {
        json!({"delegateClients": [{
            "clientId": "agent", "clientSecretRef": secret("a"), "scopes": [scope], "audiences": [audience],
        }]})
    };
    for (fields, error) in [
        (delegate("admin", RESOURCE), "delegateClients[0].scopes[0]: \"admin\" "),
        (delegate("openid", "other"), "delegateClients[0].audiences[0]: \"other\" "),
        (json!({"baselineClientScopes": ["admin"]}), "baselineClientScopes[0]: \"admin\" "),
    ] {
        let result = auth_server(&server(fields), Some(&oidc()), &identity("team", "notes"));
        let message = result.unwrap_err().to_string();
        assert!(message.starts_with(error), "{message}");
    }
}

#[test]
fn each_mistake_in_a_server_names_its_field() {
    let reserved = json!({
        "issuerUrl": "https://idp.example", "clientId": "mcp", "additionalAuthorizationParams": {"state": "x"},
    });
    let plain =
        json!({"authorizationEndpoint": "http://idp.example/a", "tokenEndpoint": "https://idp.example/t"});
    let issuer = |more: Value| {
        let mut issuer = json!({"issuerUrl": "https://o.example", "expectedAudience": "a", "allowedDelegateClients": ["b"]});
        issuer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        issuer
    };
    let trusted = |more: Value| json!({"trustedIssuers": [issuer(more)]});
    let twice = json!([issuer(json!({})), issuer(json!({}))]);
    for (fields, error) in [
        (json!({"issuer": "as.example"}), "issuer: \"as.example\" "),
        (json!({"issuer": "http://as.example"}), "issuer: \"http://as.example\" "),
        (json!({"issuer": "http://localhost", "allowConfidentialClientRegistration": true}), "issuer: with "),
        (
            json!({"allowConfidentialClientRegistration": true, "insecureAllowHTTP": true}),
            "insecureAllowHTTP: with allowConfidentialClientRegistration",
        ),
        (
            json!({"forceConfidentialRedirectUris": ["https://a.example"]}),
            "forceConfidentialRedirectUris: has no effect without ",
        ),
        (json!({"upstreamProviders": []}), "upstreamProviders: is empty"),
        (json!({"trustedIssuers": twice}), "trustedIssuers[1].issuerUrl: duplicate of \"https://o.example\""),
        (json!({"trustedIssuers": [{"issuerUrl": "https://as.example"}]}), "trustedIssuers[0].issuerUrl: "),
        (trusted(json!({"issuerUrl": "http://o.example"})), "trustedIssuers[0].issuerUrl: "),
        (
            trusted(json!({"actorMatcher": "claims.act.sub ="})),
            "trustedIssuers[0].actorMatcher: line 1, column 16, at `=`: ",
        ),
        (trusted(json!({"expectedAudience": ""})), "trustedIssuers[0].expectedAudience: is required"),
        (trusted(json!({"actorClaim": "sub"})), "trustedIssuers[0].actorClaim: \"sub\" "),
        (
            trusted(json!({"allowedDelegateClients": ["*"], "allowMayAct": true})),
            "trustedIssuers[0].allowMayAct: ",
        ),
        (
            trusted(
                json!({"jwtBearerGrant": {"maxAssertionAge": "5m", "subjectBindings": [{"subject": "*", "allowedResources": ["r"]}]}}),
            ),
            "trustedIssuers[0].jwtBearerGrant.subjectBindings[0].subject: ",
        ),
        (
            provider("oidc", reserved),
            "upstreamProviders[0].oidcConfig.additionalAuthorizationParams[state]: ",
        ),
        (provider("oauth2", plain), "upstreamProviders[0].oauth2Config.authorizationEndpoint: "),
        (json!({"storage": {"type": "redis"}}), "storage.redis: "),
        (json!({"hmacSecretRefs": [{"name": "", "key": "k"}]}), "hmacSecretRefs[0].name: "),
    ] {
        let errors = check(&server(fields.clone()));
        let [only] = errors.as_slice() else { panic!("{fields}: {errors:?}") };
        assert!(only.to_string().starts_with(error), "{only}");
    }
}

#[test]
fn every_mistake_in_a_server_is_reported() {
    let fields = json!({
        "issuer": "as.example", "hmacSecretRefs": [{"name": "", "key": "k"}], "storage": {"type": "redis"},
        "forceConfidentialRedirectUris": ["http://a.example"],
        "upstreamProviders": [{"name": "a", "type": "oidc"}, {"name": "a", "type": "oauth2"}],
        "trustedIssuers": [{
            "issuerUrl": "http://o.example", "actorMatcher": "claims.a =",
            "jwtBearerGrant": {"maxAssertionAge": "soon", "subjectBindings": []},
        }],
    });
    let expected = [
        "issuer",
        "forceConfidentialRedirectUris",
        "forceConfidentialRedirectUris[0]",
        "trustedIssuers[0].issuerUrl",
        "trustedIssuers[0].actorMatcher",
        "trustedIssuers[0].jwtBearerGrant.maxAssertionAge",
        "upstreamProviders[1].name",
        "upstreamProviders[0].type",
        "upstreamProviders[1].type",
        "storage.redis",
        "hmacSecretRefs[0].name",
    ];
    assert_eq!(self::fields(&check(&server(fields))), expected);
}

#[test]
fn a_valid_server_has_no_errors() {
    for fields in [
        json!({}),
        json!({"issuer": "http://localhost:8080"}),
        json!({"issuer": "http://as.team", "insecureAllowHTTP": true}),
        json!({"trustedIssuers": [{
            "issuerUrl": "https://o.example", "expectedAudience": "a", "allowedDelegateClients": ["b"],
            "actorMatcher": "claims.act.sub == 'ci'",
        }]}),
        json!({
            "allowConfidentialClientRegistration": true, "forceConfidentialRedirectUris": ["https://app.example/cb"],
        }),
    ] {
        assert_eq!(check(&server(fields.clone())), [], "{fields}");
    }
}

#[test]
fn only_virtual_servers_have_several_providers() {
    let one = server(json!({}));
    assert_eq!(check_single_upstream(&one), None);
    let mut two = one.clone();
    two.upstream_providers.push(one.upstream_providers[0].clone());
    let error = check_single_upstream(&two).unwrap().to_string();
    assert!(error.starts_with("upstreamProviders: has 2 providers"), "{error}");
    let duplicate = "duplicate of \"corp-idp\": remove one of them";
    assert_eq!(check(&two), [FieldError::new("upstreamProviders[1].name".to_owned(), duplicate)]);
}

#[test]
fn replicas_that_do_not_share_what_their_authorization_server_knows_have_a_warning() {
    let keys = json!({"signingKeySecretRefs": [secret("new")], "hmacSecretRefs": [secret("seal")]});
    let user = json!({"passwordSecretRef": secret("pass")});
    let redis = json!({"storage": {"type": "redis", "redis": {"addr": "redis:6379", "aclUserConfig": user}}});
    let mut both = keys.clone();
    both.as_object_mut().unwrap().extend(redis.as_object().unwrap().clone());
    for (fields, missing) in [
        (json!({}), "storage with type redis, signingKeySecretRefs, hmacSecretRefs"),
        (keys, "storage with type redis"),
        (redis, "signingKeySecretRefs, hmacSecretRefs"),
    ] {
        let condition = storage_warning(&server(fields), Some(2)).unwrap();
        let expected = format!("the replicas do not share logins: set {missing} of the authorization server");
        assert_eq!(condition.message, expected);
    }
    assert!(storage_warning(&server(both), Some(2)).is_none());
    assert!(storage_warning(&server(json!({})), Some(1)).is_none());
}
