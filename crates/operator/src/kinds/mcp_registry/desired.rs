//! The children of an MCPRegistry.

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{ConfigMap, Service},
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use skep_config::{annotations, fingerprint};
use skep_converge::Child;

use super::{
    hash,
    inputs::Inputs,
    pod,
    validate::{UserPod, ValidRegistry},
};
use crate::{
    build::{Rules, port_service, pull_secrets, rbac, service_account},
    reconcile::{BuildError, Desired},
};

impl Desired for ValidRegistry<'_> {
    fn children(&self) -> Result<Vec<Child>, BuildError> {
        let Self { inputs, user } = self;
        let account = inputs.account();
        let secrets = pull_secrets(&inputs.spec().image_pull_secrets, &inputs.settings.pull_secrets);
        let mut service_account =
            service_account(&inputs.identity, &account, secrets, &inputs.platform_secrets);
        let (mut role, mut binding) = rbac(&inputs.identity, &account, &Rules::REGISTRY, None);
        for metadata in [&mut service_account.metadata, &mut role.metadata, &mut binding.metadata] {
            metadata.labels = Some(inputs.labels(&account));
        }
        Ok(vec![
            Child::new(&config_map(inputs))?,
            Child::new(&service_account)?,
            Child::new(&role)?,
            Child::new(&binding)?,
            Child::new(&deployment(inputs, user)?)?,
            Child::new(&service(inputs))?,
        ])
    }
}

fn config_map(inputs: &Inputs) -> ConfigMap {
    let text = &inputs.spec().config_yaml;
    let mut metadata = inputs.identity.metadata(inputs.config_map());
    metadata.annotations = Some([(annotations::CONTENT_CHECKSUM.to_owned(), hash::of_file(text))].into());
    let data = [(pod::CONFIG_FILE.to_owned(), text.clone())].into();
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

fn deployment(inputs: &Inputs, user: &UserPod) -> Result<Deployment, BuildError> {
    let mut metadata = inputs.identity.metadata(inputs.server());
    metadata.labels = Some(inputs.labels(&inputs.server()));
    if let Some(template) = &inputs.spec().pod_template_spec {
        let hash = fingerprint(&template.0).map_err(BuildError::new)?;
        metadata.annotations = Some([(annotations::POD_TEMPLATE_SPEC_HASH.to_owned(), hash)].into());
    }
    let spec = DeploymentSpec {
        // An autoscaler or a user may set it.
        replicas: None,
        selector: LabelSelector { match_labels: Some(inputs.selector()), ..LabelSelector::default() },
        template: pod::template(inputs, user),
        ..DeploymentSpec::default()
    };
    Ok(Deployment { metadata, spec: Some(spec), status: None })
}

fn service(inputs: &Inputs) -> Service {
    let name = inputs.server();
    port_service(&inputs.identity, &name, inputs.labels(&name), inputs.selector(), pod::PORT, None)
}
