//! MCPServerEntry: a server elsewhere as a member of a group, without pods.

mod validate;

use std::sync::Arc;

use skep_api::{
    kinds::{MCPGroup, MCPServerEntry, MCPServerEntryPhase, MCPServerEntryStatus},
    refs::ExternalAuthConfigRef,
};
use skep_config::{FieldError, FieldPath};
use skep_world::{ReadError, Reader};

use crate::{
    config_refs::{ConfigRef, ca_bundle::CaBundle},
    reconcile::{Condition, Controller, Outcome, Resolve, Validation},
    resources::{ConfigMaps, Keys, ResolvedRef, missing_secrets},
    settings::Settings,
};

/// An entry with everything that it refers to.
pub struct Inputs {
    object: Arc<MCPServerEntry>,
    group: ResolvedRef<MCPGroup>,
    external_auth: ConfigRef<ExternalAuthConfigRef>,
    /// The keys of the ConfigMap with certificates, if the spec names one that exists.
    certificates: Option<Arc<Keys<ConfigMaps>>>,
    /// The Secret keys with the values of headers that do not exist.
    missing_secrets: Vec<FieldError>,
}

impl Resolve<MCPServerEntry> for Inputs {
    async fn resolve(
        object: Arc<MCPServerEntry>,
        _: &Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let spec = &object.spec;
        let auth = spec.external_auth_config_ref.as_ref();
        let headers = spec.header_forward.iter().flat_map(|headers| &headers.add_headers_from_secret);
        let secrets = headers.map(|header| {
            let field = FieldPath::from("headerForward.addHeadersFromSecret").key(&header.header_name);
            (field, header.value_secret_ref.clone())
        });
        Ok(Self {
            group: ResolvedRef::resolve(reader, &spec.group_ref.name),
            external_auth: ConfigRef::resolve("externalAuthConfigRef", auth, reader),
            certificates: match CaBundle::new(spec.ca_bundle_ref.as_ref()) {
                Some(bundle) => bundle.keys(reader).await?,
                None => None,
            },
            missing_secrets: missing_secrets(reader, secrets.collect()).await?,
            object: object.clone(),
        })
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
