//! Parts of RunConfigs that ToolHive's operator wrote, built again from the same manifests: `SKEP_COMPAT` names the
//! folder.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use k8s_openapi::api::core::v1::Container;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::NonFiniteFloatPolicy;
use skep_api::{
    auth_server::EmbeddedAuthServer,
    kinds::{
        MCPAuthzConfig, MCPAuthzConfigSpec, MCPExternalAuthConfig, MCPExternalAuthConfigSpec, MCPOIDCConfig,
        MCPOIDCConfigSpec, MCPTelemetryConfig, MCPTelemetryConfigSpec, MCPToolConfig, MCPToolConfigSpec,
        MCPWebhookConfig, MCPWebhookConfigSpec,
    },
    refs::{ExternalAuthConfigRef, OidcConfigRef, TelemetryConfigRef, ToolConfigRef, WebhookConfigRef},
};
use skep_config::{
    RunConfig, paths,
    run_config::{Middleware, Oidc},
};

use super::{
    ConfigRef, auth_server, authz, chain,
    samples::{identity, mounts, resolved, variables},
};
use crate::{
    build::{EnvList, Volumes},
    config_controller::Config,
};

/// A manifest and the objects that ToolHive's operator built from it.
struct Golden {
    input: Vec<Value>,
    objects: Vec<Value>,
}

impl Golden {
    fn read(folder: &Path) -> Self {
        let read = |file: &str| {
            let text = fs::read_to_string(folder.join(file)).unwrap();
            // Some checksums look like numbers that are too large.
            let large = serde_saphyr::options! { non_finite_float_policy: NonFiniteFloatPolicy::AsString };
            serde_saphyr::from_multiple_with_options(&text, large).unwrap()
        };
        Self { input: read("input.yaml"), objects: read("objects.yaml") }
    }

    fn feature(name: &str) -> Self {
        Self::read(&golden().join("features").join(name))
    }

    /// The spec of the one object of a kind.
    fn spec<T: DeserializeOwned>(&self, kind: &str) -> T {
        let object = self.input.iter().find(|object| object["kind"] == kind).unwrap();
        serde_json::from_value(object["spec"].clone()).unwrap()
    }

    /// A reference of the workload.
    fn reference<T: DeserializeOwned>(&self, kind: &str, field: &str) -> T {
        serde_json::from_value(self.spec::<Value>(kind)[field].clone()).unwrap()
    }

    fn run_configs(&self) -> Vec<RunConfig> {
        let texts = self.objects.iter().filter_map(|object| object["data"][paths::RUN_CONFIG_FILE].as_str());
        texts.map(|text| RunConfig::parse(text).unwrap()).collect()
    }

    fn run_config(&self) -> RunConfig {
        self.run_configs().remove(0)
    }

    fn oidc_ref(&self, kind: &str) -> ConfigRef<OidcConfigRef> {
        let config = MCPOIDCConfig::new("idp", self.spec("MCPOIDCConfig"));
        resolved(self.reference(kind, "oidcConfigRef"), config)
    }

    fn oidc(&self, kind: &str, config: &RunConfig) -> Option<Oidc> {
        self.oidc_ref(kind).oidc(&identity("NS", &config.name), config.port.into())
    }

    fn upstream(&self) -> ConfigRef<ExternalAuthConfigRef> {
        let config = MCPExternalAuthConfig::new("auth", self.spec("MCPExternalAuthConfig"));
        resolved(ExternalAuthConfigRef::default(), config)
    }

    fn container(&self) -> Container {
        let deployment = self.objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        serde_json::from_value(container.clone()).unwrap()
    }

    /// Checks that the pod has the variables that a part adds.
    fn has_variables(&self, add: impl FnOnce(&mut EnvList)) {
        let live = self.container().env.unwrap_or_default();
        let mut list = EnvList::default();
        add(&mut list);
        let list = list.into_vec();
        assert!(!list.is_empty());
        list.iter().for_each(|variable| assert!(live.contains(variable), "{variable:?}"));
    }

    /// Checks that the pod has the files that a part adds, in the same order.
    fn has_files(&self, add: impl FnOnce(&mut Volumes)) {
        let live = self.container().volume_mounts.unwrap_or_default();
        let live = live.iter().map(|mount| format!("{} {}", mount.name, mount.mount_path));
        let ours = mounts(add);
        assert!(!ours.is_empty());
        let same: Vec<_> = live.filter(|mount| ours.contains(mount)).collect();
        assert_eq!(same, ours);
    }
}

fn golden() -> PathBuf {
    let folder = env::var_os("SKEP_COMPAT").expect("SKEP_COMPAT names the folder of ToolHive's files");
    PathBuf::from(folder).join("golden")
}

fn all() -> Vec<(PathBuf, Golden)> {
    let folders = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect()
    };
    let examples = folders(&golden()).into_iter().flat_map(|folder| folders(&folder));
    let complete = examples.filter(|folder| folder.join("objects.yaml").exists());
    complete.map(|folder| (folder.clone(), Golden::read(&folder))).collect()
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn the_middleware_is_the_same_in_the_same_order() {
    let mut count = 0;
    for (folder, golden) in all() {
        for config in golden.run_configs() {
            let theirs: Vec<_> =
                config.middleware_configs.iter().filter(|one| **one != Middleware::UsageMetrics).collect();
            let bare = RunConfig { middleware_configs: Vec::new(), ..config.clone() };
            let ours = chain::middleware(&bare).unwrap();
            similar_asserts::assert_eq!(ours.iter().collect::<Vec<_>>(), theirs, "{}", folder.display());
            count += 1;
        }
    }
    assert!(count > 30, "only {count} files");
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn an_embedded_authorization_server_is_the_same() {
    let golden = Golden::feature("server_embedded_auth");
    let config = golden.run_config();
    let workload = identity("NS", &config.name);
    let spec: MCPExternalAuthConfigSpec = golden.spec("MCPExternalAuthConfig");
    let oidc_spec: MCPOIDCConfigSpec = golden.spec("MCPOIDCConfig");
    assert_eq!([MCPExternalAuthConfig::check(&spec), MCPOIDCConfig::check(&oidc_spec)].concat(), []);
    let server = spec.embedded_auth_server.as_ref().unwrap();
    assert_eq!(auth_server::check_single_upstream(server), None);
    let mut oidc = golden.oidc("MCPServer", &config).unwrap();
    let ours = auth_server::auth_server(server, Some(&oidc), &workload).unwrap();
    auth_server::announce_scopes(&ours, &mut oidc);
    similar_asserts::assert_eq!(Some(ours), config.embedded_auth_server_config);
    similar_asserts::assert_eq!(Some(oidc), config.oidc_config);
    golden.has_variables(|list| auth_server::add_env(server, list));
    golden.has_files(|volumes| auth_server::add_volumes(server, volumes));
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn the_authorization_server_of_a_virtual_server_is_the_same() {
    let golden = Golden::feature("vmcp_auth_server");
    let server: EmbeddedAuthServer = golden.reference("VirtualMCPServer", "authServerConfig");
    let incoming: Value = golden.reference("VirtualMCPServer", "incomingAuth");
    let field: OidcConfigRef = serde_json::from_value(incoming["oidcConfigRef"].clone()).unwrap();
    let workload = identity("NS", "front");
    let idp = resolved(field, MCPOIDCConfig::new("idp", golden.spec("MCPOIDCConfig")));
    let oidc = idp.oidc(&workload, 4483);
    let files =
        golden.objects.iter().find_map(|object| object["data"][paths::VMCP_AUTH_SERVER_FILE].as_str());
    let theirs = serde_saphyr::from_str(files.unwrap()).unwrap();
    similar_asserts::assert_eq!(auth_server::auth_server(&server, oidc.as_ref(), &workload), Ok(theirs));
    golden.has_variables(|list| auth_server::add_env(&server, list));
    golden.has_files(|volumes| auth_server::add_volumes(&server, volumes));
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn shared_policies_tools_and_webhooks_are_the_same() {
    let golden = Golden::feature("server_authz_ref_toolconfig_webhooks");
    let config = golden.run_config();
    let policies: MCPAuthzConfigSpec = golden.spec("MCPAuthzConfig");
    let tools: MCPToolConfigSpec = golden.spec("MCPToolConfig");
    let hooks: MCPWebhookConfigSpec = golden.spec("MCPWebhookConfig");
    assert_eq!(
        [MCPAuthzConfig::check(&policies), MCPToolConfig::check(&tools), MCPWebhookConfig::check(&hooks)]
            .concat(),
        []
    );
    assert_eq!(authz::document(&policies).ok(), config.authz_config);
    let mut ours = RunConfig::default();
    resolved(ToolConfigRef::default(), MCPToolConfig::new("tools", tools)).add_to(&mut ours);
    let hooks = resolved(WebhookConfigRef::default(), MCPWebhookConfig::new("hooks", hooks));
    hooks.add_to(&mut ours);
    assert_eq!(ours.tools_filter, config.tools_filter);
    assert_eq!(ours.tools_override, config.tools_override);
    assert_eq!(ours.validating_webhooks, config.validating_webhooks);
    assert_eq!(ours.mutating_webhooks, config.mutating_webhooks);
    golden.has_files(|volumes| hooks.add_volumes(volumes));
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn a_token_exchange_behind_tokens_of_the_cluster_is_the_same() {
    let golden = Golden::feature("server_token_exchange_k8s_oidc");
    let config = golden.run_config();
    let upstream = golden.upstream();
    let mut ours = RunConfig::default();
    upstream.add_to(&mut ours);
    assert_eq!(ours.token_exchange_config, config.token_exchange_config);
    golden.has_variables(|list| upstream.add_env(list));
    assert_eq!(golden.oidc("MCPServer", &config), config.oidc_config);
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn the_configuration_of_a_remote_proxy_is_the_same() {
    let golden = Golden::feature("remote_full");
    let config = golden.run_config();
    let mut ours = RunConfig::default();
    golden.upstream().add_to(&mut ours);
    assert_eq!(ours.aws_sts_config, config.aws_sts_config);
    assert_eq!(golden.oidc("MCPRemoteProxy", &config), config.oidc_config);
    assert_eq!(golden.spec::<MCPToolConfigSpec>("MCPToolConfig").tools_filter, config.tools_filter);
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn policies_within_a_workload_are_the_same() {
    for (feature, kind) in [("remote_full", "MCPRemoteProxy"), ("server_inline_authz_audit", "MCPServer")] {
        let golden = Golden::feature(feature);
        let config = golden.run_config();
        let policies = golden.reference(kind, "authzConfig");
        assert_eq!(authz::inline_document(&policies).ok(), config.authz_config);
        let files = golden.objects.iter().find_map(|object| object["data"][paths::AUTHZ_FILE].as_str());
        assert_eq!(authz::inline_file(&policies).ok().as_deref(), files);
        let name = format!("{}-authz-inline", config.name);
        golden.has_files(|volumes| authz::add_volumes(&policies, &name, volumes));
    }
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn a_bearer_token_is_the_same() {
    let golden = Golden::read(&golden().join("external-auth/mcpremoteproxy_with_bearer_token"));
    let upstream = golden.upstream();
    let mut ours = RunConfig::default();
    upstream.add_to(&mut ours);
    assert_eq!(ours.remote_auth_config, golden.run_config().remote_auth_config);
    golden.has_variables(|list| upstream.add_env(list));
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn telemetry_and_a_private_authority_are_the_same() {
    let golden = Golden::feature("server_everything_overridden");
    let config = golden.run_config();
    let workload = identity("NS", &config.name);
    let spec: MCPTelemetryConfigSpec = golden.spec("MCPTelemetryConfig");
    let field: TelemetryConfigRef = golden.reference("MCPServer", "telemetryConfigRef");
    assert_eq!(MCPTelemetryConfig::check(&spec), []);
    let otel = resolved(field, MCPTelemetryConfig::new("otel", spec));
    assert_eq!(otel.telemetry(&workload), config.telemetry_config);
    assert_eq!(variables(|list| otel.add_env(&workload, list)).len(), 2);
    golden.has_variables(|list| otel.add_env(&workload, list));
    golden.has_files(|volumes| otel.add_volumes(volumes));
    assert_eq!(golden.oidc("MCPServer", &config), config.oidc_config);
    golden.has_files(|volumes| golden.oidc_ref("MCPServer").add_volumes(volumes));
}
