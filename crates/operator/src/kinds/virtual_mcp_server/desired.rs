//! The children of a VirtualMCPServer.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, LocalObjectReference, ResourceRequirements, Secret},
    },
    apimachinery::pkg::api::resource::Quantity,
};
use skep_api::kinds::OutgoingAuthSource;
use skep_config::{annotations, fingerprint, labels, objects, paths, ports};
use skep_converge::Child;

use super::{
    container::{args, environment, volumes},
    inputs::Inputs,
    validate::ValidServer,
};
use crate::{
    build::{
        Main, Probes, ProxyDeployment, Rules, Volumes, checksum_of, config_map, proxy_service, pull_secrets,
        rbac, reviews, service_account,
    },
    reconcile::{BuildError, Desired},
};

impl Desired for ValidServer<'_> {
    fn children(&self) -> Result<Vec<Child>, BuildError> {
        let inputs = self.inputs;
        let (spec, identity) = (inputs.spec(), &inputs.identity);
        let files = files(self)?;
        let pull_secrets = pull_secrets(&spec.image_pull_secrets, &inputs.settings.pull_secrets);
        let mut children = Vec::new();
        if spec.service_account.is_none() {
            let account = inputs.account();
            let rules = match inputs.source() {
                OutgoingAuthSource::Discovered => Rules::VMCP_DISCOVERED,
                OutgoingAuthSource::Inline => Rules::VMCP_INLINE,
            };
            let (role, binding) = rbac(identity, &account, &rules, reviews(inputs.auth_server().is_some()));
            let platform = &inputs.platform_secrets;
            children.push(Child::new(&service_account(identity, &account, pull_secrets.clone(), platform))?);
            children.push(Child::new(&role)?);
            children.push(Child::new(&binding)?);
        }
        children.push(Child::random_secret(&session_secret(inputs), objects::SESSION_KEY)?);
        children.push(Child::new(&files)?);
        children.push(Child::new(&deployment(self, &files, volumes(inputs), pull_secrets)?)?);
        let affinity = spec.session_affinity.unwrap_or_default();
        let type_ = Some(spec.service_type.unwrap_or_default());
        let service = proxy_service(identity, &inputs.service(), ports::VMCP.into(), affinity, type_, None);
        children.push(Child::new(&service)?);
        Ok(children)
    }
}

/// The ConfigMap with the server's configuration, and with that of its authorization server.
fn files(ValidServer { inputs, config, auth_server, .. }: &ValidServer<'_>) -> Result<ConfigMap, BuildError> {
    let config = config.render().map_err(BuildError::new)?;
    let mut data = BTreeMap::from([(paths::VMCP_CONFIG_FILE.to_owned(), config)]);
    if let Some(server) = auth_server {
        data.insert(paths::VMCP_AUTH_SERVER_FILE.into(), server.render().map_err(BuildError::new)?);
    }
    let name = objects::vmcp_config(&inputs.identity.name);
    let live = inputs.live_config.as_deref();
    Ok(config_map(&inputs.identity, name, labels::VMCP_CONFIG, labels::VIRTUAL_MCP_SERVER, data, live))
}

/// The Secret whose value binds sessions to their owners. The value is generated at creation.
fn session_secret(inputs: &Inputs) -> Secret {
    let identity = &inputs.identity;
    let mut metadata = identity.metadata(objects::session_secret(&identity.name));
    let labels = [
        (labels::APP_NAME, identity.app),
        (labels::APP_INSTANCE, &identity.name),
        (labels::APP_COMPONENT, labels::SESSION_SECURITY),
        (labels::APP_MANAGED_BY, labels::OPERATOR),
    ];
    metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let purpose = "hmac-secret-for-session-token-binding".to_owned();
    metadata.annotations = Some([(annotations::PURPOSE.to_owned(), purpose)].into());
    Secret { metadata, type_: Some("Opaque".into()), ..Secret::default() }
}

fn deployment(
    ValidServer { inputs, backend_auths, .. }: &ValidServer<'_>,
    files: &ConfigMap,
    volumes: Volumes,
    pull_secrets: Option<Vec<LocalObjectReference>>,
) -> Result<Deployment, BuildError> {
    let spec = inputs.spec();
    let hash = volumes.fingerprint().map_err(BuildError::new)?;
    let mut own_annotations = BTreeMap::from([(annotations::POD_VOLUMES_HASH.to_owned(), hash)]);
    if let Some(secrets) = &pull_secrets {
        let mut sorted = secrets.clone();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        let hash = fingerprint(&sorted).map_err(BuildError::new)?;
        own_annotations.insert(annotations::IMAGE_PULL_SECRETS_HASH.into(), hash);
    }
    ProxyDeployment {
        identity: &inputs.identity,
        platform: inputs.settings.platform(),
        overrides: None,
        annotations: own_annotations,
        replicas: spec.replicas,
        service_account: spec.service_account.clone().unwrap_or_else(|| inputs.account()),
        pull_secrets,
        main: Main {
            name: objects::VMCP_CONTAINER,
            image: &inputs.settings.vmcp_image,
            pull_policy: Some("IfNotPresent"),
            args: args(inputs),
            env: environment(inputs, backend_auths),
            port: ports::VMCP.into(),
            resources: Some(resources()),
            probes: Probes::VMCP,
        },
        volumes,
        pod_annotations: [checksum_of(files)].into(),
        grace_period: Some(30),
        patch: spec.pod_template_spec.as_ref(),
    }
    .build()
}

/// The resources of the server's container. podTemplateSpec can change them.
fn resources() -> ResourceRequirements {
    let amounts = |cpu: &str, memory: &str| {
        let amounts = [("cpu", cpu), ("memory", memory)];
        Some(amounts.map(|(name, amount)| (name.to_owned(), Quantity(amount.into()))).into())
    };
    ResourceRequirements {
        requests: amounts("100m", "128Mi"),
        limits: amounts("500m", "512Mi"),
        claims: None,
    }
}
