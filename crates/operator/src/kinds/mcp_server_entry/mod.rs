//! MCPServerEntry: a server elsewhere as a member of a group, without pods.

mod validate;

use std::{collections::HashMap, sync::Arc};

use skep_api::{
    kinds::{MCPGroup, MCPServerEntry, MCPServerEntryPhase, MCPServerEntryStatus},
    refs::ExternalAuthConfigRef,
};
use skep_world::{ReadError, Reader};

use crate::{
    config_refs::{ConfigRef, ca_bundle::CaBundle},
    reconcile::{Condition, Controller, Outcome, Resolve, Validation},
    resources::{ConfigMaps, Keys, ResolvedRef, Secrets},
    settings::Settings,
};

/// An entry with everything that it refers to.
pub struct Inputs {
    object: Arc<MCPServerEntry>,
    group: ResolvedRef<MCPGroup>,
    external_auth: ConfigRef<ExternalAuthConfigRef>,
    /// The keys of the ConfigMap with certificates, if the spec names one that exists.
    certificates: Option<Arc<Keys<ConfigMaps>>>,
    /// The Secrets with the values of headers, with their keys if they exist.
    secrets: HashMap<String, Option<Arc<Keys<Secrets>>>>,
}

impl Resolve<MCPServerEntry> for Inputs {
    async fn resolve(
        object: Arc<MCPServerEntry>,
        _: &Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let spec = &object.spec;
        let auth = spec.external_auth_config_ref.as_ref();
        let mut inputs = Self {
            group: ResolvedRef::resolve(reader, &spec.group_ref.name),
            external_auth: ConfigRef::resolve("externalAuthConfigRef", auth, reader),
            certificates: match CaBundle::new(spec.ca_bundle_ref.as_ref()) {
                Some(bundle) => reader.content::<Keys<ConfigMaps>>(bundle.config_map).await?,
                None => None,
            },
            secrets: HashMap::new(),
            object: object.clone(),
        };
        for header in spec.header_forward.iter().flat_map(|headers| &headers.add_headers_from_secret) {
            let name = &header.value_secret_ref.name;
            inputs.secrets.insert(name.clone(), reader.content::<Keys<Secrets>>(name).await?);
        }
        Ok(inputs)
    }
}

impl Controller for MCPServerEntry {
    type Inputs = Inputs;

    fn status(_: &Inputs, _: &Validation, outcome: &Outcome) -> (MCPServerEntryStatus, Vec<Condition>) {
        let phase = match outcome {
            Outcome::Converged(_) => MCPServerEntryPhase::Valid,
            Outcome::Blocked(_) | Outcome::Failed(_) => MCPServerEntryPhase::Failed,
        };
        (MCPServerEntryStatus { phase: Some(phase), ..MCPServerEntryStatus::default() }, Vec::new())
    }
}
