//! The specs in which the fields of a VirtualMCPServer are tried.

use serde_json::{Value, json};
use skep_testkit::json::with_fields;

use crate::references::PERMIT;

/// Parts of `config` that the operator sets itself, each with a user's value that is ignored.
pub(super) fn overwritten() -> Vec<(&'static str, Value)> {
    let way = json!({"type": "header_injection", "headerInjection": {"headerName": "X", "headerValue": "v"}});
    let other = json!({"issuer": "https://other.example", "clientId": "c", "audience": "a"});
    vec![
        ("config.groupRef", json!("another")),
        ("config.incomingAuth", json!({"type": "oidc", "oidc": other})),
        ("config.name", json!("another")),
        ("config.outgoingAuth", json!({"source": "inline", "default": way, "backends": {"one": way}})),
        ("config.sessionStorage", json!({"provider": "redis", "address": "other:6379"})),
        ("config.telemetry", json!({"endpoint": "other.example", "tracingEnabled": true})),
    ]
}

pub(super) fn virtual_servers() -> Vec<Value> {
    let mut all = vec![everything(), workflow(), search(), openai(), embeddings()];
    let policies = json!({"type": "configMap", "configMap": {"name": "policies", "key": "authz.json"}});
    for auth in [
        json!({"type": "anonymous", "authzConfig": policies}),
        json!({"type": "anonymous", "authzConfigRef": {"name": "authz"}}),
        json!({"type": "oidc", "oidcConfigRef": oidc()}),
    ] {
        all.push(minimal(&json!({"incomingAuth": auth})));
    }
    all.push(minimal(&json!({"config": {"passthroughHeaders": ["X-Trip"]}})));
    all.extend(auth_servers());
    all
}

/// A spec with the required fields, and more.
fn minimal(more: &Value) -> Value {
    with_fields(json!({"groupRef": {"name": "group"}, "incomingAuth": {"type": "anonymous"}}), more)
}

fn oidc() -> Value {
    json!({
        "name": "oidc", "audience": "https://mcp.example", "resourceUrl": "https://mcp.example", "scopes": ["openid"],
    })
}

fn everything() -> Value {
    let way = json!({"type": "externalAuthConfigRef", "externalAuthConfigRef": {"name": "exchange"}});
    let hints = hints();
    let limit = json!({"maxTokens": 5, "refillPeriod": "1m"});
    let tools = json!([{
        "workload": "weather", "toolConfigRef": {"name": "tools"}, "filter": ["forecast"], "excludeAll": true,
        "overrides": {"get": {"name": "forecast", "description": "The weather.", "annotations": hints}},
    }]);
    minimal(&json!({
        "incomingAuth": {
            "type": "oidc",
            "oidcConfigRef": oidc(),
            "authzConfig": {
                "type": "inline", "inline": {"policies": [PERMIT], "entitiesJson": "[]"},
                "groupClaimName": "groups", "roleClaimName": "roles", "groupEntityType": "Team",
            },
        },
        "outgoingAuth": {"source": "discovered", "default": way, "backends": {"weather": way}},
        "passthroughHeaders": ["X-Team"],
        "config": {
            "aggregation": {
                "conflictResolution": "priority",
                "conflictResolutionConfig": {"prefixFormat": "{workload}.", "priorityOrder": ["weather"]},
                "defaultToolVisibility": "deny", "excludeAllTools": false, "tools": tools,
            },
            "compositeToolRefs": [{"name": "workflow"}],
            "operational": {
                "logLevel": "debug",
                "timeouts": {"default": "30s", "perWorkload": {"weather": "1m30s"}},
                "failureHandling": {
                    "healthCheckInterval": "1m", "healthCheckTimeout": "5s", "unhealthyThreshold": 2,
                    "statusReportingInterval": "15s", "partialFailureMode": "best_effort",
                    "circuitBreaker": {"enabled": true, "failureThreshold": 3, "timeout": "90s"},
                },
            },
            "metadata": {"team": "sky"},
            "audit": {
                "enabled": true, "component": "c", "eventTypes": ["mcp_tool_call"], "excludeEventTypes": ["mcp_ping"],
                "includeRequestData": true, "includeResponseData": true, "detectApplicationErrors": false,
                "maxDataSize": 4096, "maxDelegationDepth": 3, "logFile": "/var/log/audit.log",
            },
            "codeMode": {
                "enabled": true, "stepLimit": 200_000, "parallelMaxConcurrency": 4, "toolCallTimeout": "45s",
            },
            "rateLimiting": {
                "shared": limit, "perUser": limit,
                "tools": [{"name": "forecast", "shared": limit, "perUser": limit}],
            },
            "backends": [{
                "name": "weather", "url": "https://weather.example", "transport": "sse", "type": "entry",
                "caBundlePath": "/ca.crt", "metadata": {"team": "sky"},
            }],
        },
        "telemetryConfigRef": {"name": "otel", "serviceName": "outdoors"},
        "serviceType": "LoadBalancer",
        "sessionAffinity": "None",
        "replicas": 2,
        "sessionStorage": {
            "provider": "redis", "address": "redis:6379", "db": 1, "keyPrefix": "p:", "passwordRef": secret(),
        },
        "serviceAccount": "outdoors",
        "imagePullSecrets": [{"name": "pull"}],
        "podTemplateSpec": {"spec": {"nodeSelector": {"disk": "ssd"}}},
    }))
}

fn secret() -> Value {
    json!({"name": "s", "key": "k"})
}

/// The metadata of a tool except its description.
fn hints() -> Value {
    json!({
        "title": "t", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": true,
    })
}

fn workflow() -> Value {
    let steps = json!([
        {"id": "trails", "tool": "maps.search", "arguments": {"query": "trails near {{.params.place}}"},
         "timeout": "30s", "onError": {"action": "retry", "retryCount": 3, "retryDelay": "2s"}},
        {"id": "day", "type": "elicitation", "message": "When?", "dependsOn": ["trails"],
         "schema": {"type": "object", "properties": {"date": {"type": "string"}}},
         "onDecline": {"action": "continue"}, "onCancel": {"action": "skip_remaining"}},
        {"id": "weather", "type": "forEach", "collection": "{{json .steps.trails.output.trails}}",
         "itemVar": "trail", "maxParallel": 5, "maxIterations": 20, "dependsOn": ["trails"],
         "step": {"id": "forecast", "type": "tool", "tool": "weather.forecast"}},
        {"id": "shelter", "type": "tool", "tool": "maps.shelters", "condition": "{{.params.stay}}",
         "defaultResults": {"count": 0}},
    ]);
    let place =
        json!({"type": "string", "description": "Where.", "value": "{{.params.place}}", "default": "here"});
    let shelter = json!({"type": "object", "description": "To stay dry.", "properties": {
        "count": {"type": "integer", "description": "How many.", "value": "{{.steps.shelter.output.count}}"},
    }});
    let parameters = json!({"place": {"type": "string"}, "stay": {"type": "boolean"}});
    minimal(&json!({"config": {"allowRunAsWorkflow": true, "compositeTools": [{
        "name": "hike", "description": "Plans a hike.", "timeout": "10m",
        "parameters": {"type": "object", "properties": parameters},
        "steps": steps,
        "output": {"properties": {"place": place, "shelter": shelter}, "required": ["place"]},
        "annotations": hints(), "runAs": "workflow",
    }]}}))
}

fn search() -> Value {
    minimal(&json!({"config": {"optimizer": {
        "embeddingProvider": "tei", "embeddingService": "http://embed.example", "embeddingServiceTimeout": "10s",
        "maxToolsToReturn": 12, "hybridSearchSemanticRatio": "0.7", "semanticDistanceThreshold": "0.9",
        "embeddingModelPath": "/models/small", "pinnedTools": ["maps_find"],
        "findToolDescription": "Finds tools.", "callToolDescription": "Calls a tool.",
    }}}))
}

fn openai() -> Value {
    minimal(&json!({"config": {"optimizer": {
        "embeddingProvider": "openai", "embeddingService": "https://models.example/v1",
        "embeddingModel": "small", "embeddingHeaders": {"X-Project": "outdoors"},
    }}}))
}

fn embeddings() -> Value {
    minimal(&json!({"embeddingServerRef": {"name": "embed"}}))
}

/// One with every field that can be combined, and others.
fn auth_servers() -> Vec<Value> {
    let user_info = json!({
        "endpointUrl": "https://login.example/userinfo", "httpMethod": "GET", "additionalHeaders": {"Accept": "a"},
        "fieldMapping": {"subjectFields": ["sub"], "nameFields": ["name"], "emailFields": ["email"]},
    });
    let company = json!({"name": "company", "type": "oidc", "oidcConfig": {
        "issuerUrl": "https://idp.example", "clientId": "c", "clientSecretRef": secret(),
        "redirectUri": "https://mcp.example/oauth/callback", "scopes": ["openid"], "subjectClaim": "oid",
        "userInfoOverride": user_info, "additionalAuthorizationParams": {"prompt": "consent"},
    }});
    let endpoints = json!({
        "authorizationEndpoint": "https://forge.example/authorize", "tokenEndpoint": "https://forge.example/token",
    });
    let forge = json!({
        "clientId": "c", "clientSecretRef": secret(), "redirectUri": "https://mcp.example/oauth/callback",
        "scopes": ["user"], "userInfo": user_info, "additionalAuthorizationParams": {"access_type": "offline"},
        "tokenResponseMapping": {
            "accessTokenPath": "a", "scopePath": "b", "refreshTokenPath": "c", "expiresInPath": "d",
        },
        "identityFromToken": {"subjectPath": "a", "namePath": "b", "emailPath": "c"},
        "insecureAllowHTTP": true, "allowPrivateIPs": true,
    });
    let registered = json!({"dcrConfig": {
        "discoveryUrl": "https://forge.example/meta", "initialAccessTokenRef": secret(), "softwareId": "skep",
        "softwareStatement": "s",
    }});
    let endpoint_only = json!({"dcrConfig": {"registrationEndpoint": "https://forge.example/register"}});
    let oauth2 = |more: &Value| json!({"name": "company", "type": "oauth2", "oauth2Config": with_fields(endpoints.clone(), more)});
    let tls = json!({"insecureSkipVerify": false, "caCertSecretRef": secret()});
    let redis = json!({
        "addr": "redis.example:6379", "clusterMode": true, "tls": tls,
        "aclUserConfig": {"usernameSecretRef": secret(), "passwordSecretRef": secret()},
        "dialTimeout": "2s", "readTimeout": "1s", "writeTimeout": "500ms", "encryptionKeySecretRef": secret(),
    });
    let sentinel = |config: Value| {
        json!({"type": "redis", "redis": {
            "sentinelConfig": config, "aclUserConfig": {"passwordSecretRef": secret()}, "sentinelTls": tls,
        }})
    };
    let addresses = json!({"masterName": "primary", "sentinelAddrs": ["sentinel:26379"], "db": 2});
    let service = json!({
        "masterName": "primary", "sentinelService": {"name": "sentinels", "namespace": "data", "port": 26380},
    });
    let partner = json!({
        "issuerUrl": "https://keys.example", "expectedAudience": "https://login.example",
        "jwksUrl": "https://keys.example/jwks.json", "insecureAllowHTTP": true, "allowPrivateIPs": true,
        "actorClaim": "azp", "allowedActors": ["chat"], "actorMatcher": "claims.azp.startsWith('partner-')",
        "allowedDelegateClients": ["planner"], "allowMayAct": true,
    });
    let cluster = json!({"issuerUrl": "https://cluster.example", "jwtBearerGrant": {
        "maxAssertionAge": "5m", "acceptedAudiences": ["https://login.example"],
        "subjectBindings": [{"subject": "nightly", "allowedResources": ["https://mcp.example"]}],
    }});
    let planner = json!({
        "clientId": "planner", "clientSecretRef": secret(), "scopes": ["openid"], "audiences": ["https://mcp.example"],
    });
    let everything = json!({
        "authorizationEndpointBaseUrl": "https://login.mcp.example",
        "signingKeySecretRefs": [secret()], "hmacSecretRefs": [secret()],
        "tokenLifespans": {
            "accessTokenLifespan": "30m", "refreshTokenLifespan": "72h", "authCodeLifespan": "90s",
        },
        "upstreamProviders": [company], "primaryUpstreamProvider": "company",
        "storage": {"type": "redis", "redis": redis},
        "disableUpstreamTokenInjection": true, "baselineClientScopes": ["openid"],
        "allowConfidentialClientRegistration": true,
        "forceConfidentialRedirectUris": ["https://chat.example/done"],
        "insecureAllowHTTP": false, "insecureAllowConfidentialOverLoopbackHTTP": false,
        "cimd": {"enabled": true, "cacheMaxSize": 64, "cacheFallbackTtl": "10m"},
        "delegateClients": [planner], "trustedIssuers": [partner, cluster],
        "clientsWithoutConsent": ["https://notes.example/client.json"],
        "sessionLifespan": "720h",
        "allowedUsers": {
            "emailDomains": ["example.com"], "claims": [{"name": "groups", "values": ["staff"]}],
        },
        "clientRegistration": {
            "disabled": true, "initialAccessTokenRef": secret(), "redirectHosts": ["app.example"],
        },
    });
    let others = [
        json!({"upstreamProviders": [oauth2(&forge)]}),
        json!({"upstreamProviders": [oauth2(&registered)]}),
        json!({"upstreamProviders": [oauth2(&endpoint_only)]}),
        json!({"upstreamProviders": [company], "storage": sentinel(addresses)}),
        json!({"upstreamProviders": [company], "storage": sentinel(service)}),
    ];
    let inline =
        json!({"type": "inline", "inline": {"policies": [PERMIT], "primaryUpstreamProvider": "company"}});
    let auth = json!({"type": "oidc", "oidcConfigRef": oidc(), "authzConfig": inline});
    let of = |server: &Value| {
        let server = with_fields(json!({"issuer": "https://login.example"}), server);
        minimal(&json!({"incomingAuth": auth, "authServerConfig": server}))
    };
    std::iter::once(&everything).chain(&others).map(of).collect()
}
