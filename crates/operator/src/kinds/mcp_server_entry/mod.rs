//! MCPServerEntry: a server elsewhere as a member of a group, with no pod of its own.

mod findings;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use skep_api::kinds::{
    MCPExternalAuthConfig, MCPGroup, MCPServerEntry, MCPServerEntryPhase, MCPServerEntryStatus,
};
use skep_converge::{Child, Finalizer};
use skep_world::{ReadError, Reader, Watched};

use crate::{
    conditions::conditions,
    driver::{Blocked, Controller, Outcome},
    notice::{Notice, Severity},
    parts::ca_bundle::CaBundle,
    reference::Reference,
    watched::{ConfigMaps, Entries, ExternalAuthConfigs, Groups, Secrets},
};

/// The controller of MCPServerEntries.
pub(super) struct McpServerEntries;

/// An entry with everything that it refers to.
pub(crate) struct Inputs {
    object: Arc<MCPServerEntry>,
    group: Reference<MCPGroup>,
    external_auth: Option<Reference<MCPExternalAuthConfig>>,
    /// The ConfigMap with certificates, if one is named and there.
    certificates: Option<Arc<BTreeMap<String, String>>>,
    /// The Secrets with the values of headers, with their keys. One that is not there has none.
    secrets: HashMap<String, Option<Arc<Vec<String>>>>,
}

impl Controller for McpServerEntries {
    type Resource = Entries;
    type Inputs = Inputs;

    const MANAGER: &'static str = "skep-mcpserverentry";
    const FINALIZER: Option<Finalizer> = None;

    async fn resolve(&self, object: Arc<MCPServerEntry>, reader: &mut Reader) -> Result<Inputs, ReadError> {
        let spec = &object.spec;
        let auth = spec.external_auth_config_ref.as_ref();
        let mut inputs = Inputs {
            group: Reference::follow::<Groups>(reader, &spec.group_ref.name),
            external_auth: auth.map(|auth| Reference::follow::<ExternalAuthConfigs>(reader, &auth.name)),
            certificates: match CaBundle::new(spec.ca_bundle_ref.as_ref()) {
                Some(bundle) => reader.content::<ConfigMaps>(bundle.config_map).await?,
                None => None,
            },
            secrets: HashMap::new(),
            object: object.clone(),
        };
        for header in spec.header_forward.iter().flat_map(|headers| &headers.add_headers_from_secret) {
            let name = &header.value_secret_ref.name;
            inputs.secrets.insert(name.clone(), reader.content::<Secrets>(name).await?);
        }
        Ok(inputs)
    }

    /// Whoever serves the group calls the server itself: nothing is made for an entry.
    fn desired(&self, inputs: &Inputs) -> Result<Vec<Child>, Blocked> {
        match findings::problem(inputs) {
            Some(problem) => Err(Blocked::new(problem)),
            None => Ok(Vec::new()),
        }
    }

    fn status(&self, inputs: &Inputs, outcome: &Outcome, now: &Time) -> Child {
        let metadata = &inputs.object.metadata;
        let generation = metadata.generation.unwrap_or_default();
        let before = inputs.object.status.clone().unwrap_or_default();
        let phase = match outcome {
            Outcome::Converged(_) => MCPServerEntryPhase::Valid,
            Outcome::Blocked(_) | Outcome::Failed(_) => MCPServerEntryPhase::Failed,
        };
        let status = MCPServerEntryStatus {
            observed_generation: Some(generation),
            phase: Some(phase),
            conditions: conditions(findings::findings(inputs), &before.conditions, generation, now),
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Child::status(Entries::KIND, text(&metadata.namespace), text(&metadata.name), json!(status))
    }

    /// A problem is told once: the status still says what was told before.
    fn notices(&self, inputs: &Inputs, outcome: &Outcome) -> Vec<Notice> {
        let Outcome::Blocked(blocked) = outcome else { return Vec::new() };
        let conditions = inputs.object.status.iter().flat_map(|status| &status.conditions);
        let mut told =
            conditions.filter(|condition| condition.type_ == findings::VALID && condition.status == "False");
        if told.any(|condition| condition.message == blocked.message) {
            return Vec::new();
        }
        let (reason, note) = ("ConfigInvalid".into(), blocked.message.clone());
        vec![Notice { severity: Severity::Warning, reason, action: "Validate", note }]
    }
}
