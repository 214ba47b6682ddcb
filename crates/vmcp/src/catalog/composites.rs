//! Composite tools among the tools of the backends.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use skep_api::{
    tools::ToolAnnotations,
    vmcp::{CompositeTool, OutputProperty, RunAs},
};
use skep_gateway::{identity::Identity, message::Part};
use skep_workflow::{Workflow, WorkflowError};
use tracing::warn;
use uuid::Uuid;

use super::{Entry, Table, table::Provider};

/// A composite tool that can run.
#[derive(Debug)]
pub(crate) struct Composite {
    pub(crate) name: Box<str>,
    pub(crate) workflow: Workflow,
    /// Which definition of it this is.
    pub(crate) definition: String,
    /// Itself as policies see it, if its steps run as the workflow.
    pub(crate) runs_as: Option<Arc<Identity>>,
    /// The tool as clients see it, without annotations.
    tool: Map<String, Value>,
    annotations: ToolAnnotations,
}

impl Composite {
    pub(crate) fn new(tool: &CompositeTool) -> Result<Self, Vec<WorkflowError>> {
        let workflow = Workflow::new(tool)?;
        let schema = tool.parameters.as_ref().map(|schema| Value::Object(schema.0.clone()));
        let mut seen = Map::new();
        seen.insert("name".into(), tool.name.as_str().into());
        seen.insert("description".into(), tool.description.as_deref().unwrap_or_default().into());
        seen.insert("inputSchema".into(), schema.unwrap_or_else(|| json!({"type": "object"})));
        if let Some(output) = &tool.output {
            let mut schema = object_schema(&output.properties);
            if !output.required.is_empty() {
                schema["required"] = output.required.clone().into();
            }
            seen.insert("outputSchema".into(), schema);
        }
        let annotations = tool.annotations.clone().unwrap_or_default();
        let runs_as = (tool.run_as == Some(RunAs::Workflow))
            .then(|| Arc::new(Identity { subject: tool.name.clone(), ..Identity::with_claims(Map::new()) }));
        let text = serde_json::to_vec(tool).unwrap_or_default();
        let definition = format!("{:x}", Bytes::copy_from_slice(&Sha256::digest(&text)));
        Ok(Self { name: tool.name.as_str().into(), workflow, definition, runs_as, tool: seen, annotations })
    }

    /// The calls that a run makes, by the id of the run's entry in the audit log.
    pub(crate) fn part(&self, audit_id: Uuid) -> Part {
        Part { tool: (*self.name).into(), audit_id, workflow: self.runs_as.clone() }
    }

    /// The tool among these, or why it cannot be offered.
    fn offered(self: &Arc<Self>, tools: &Table, own_tools: &[&str]) -> Result<Entry, NotOffered> {
        if own_tools.contains(&&*self.name) {
            return Err(NotOffered::Reserved);
        }
        let mut hints = Hints::default();
        for tool in self.workflow.tools() {
            hints.add(tools.step(tool).ok_or_else(|| NotOffered::NoTool(tool.into()))?.entry);
        }
        let mut seen = self.tool.clone();
        let annotations = hints.with(&self.annotations)?;
        if !annotations.is_empty() {
            seen.insert("annotations".into(), Value::Object(annotations));
        }
        let provider = Provider::Composite(self.clone());
        Ok(Entry::own(&self.name, provider, Value::Object(seen).to_string()))
    }
}

/// The composite tools that can be offered beside these tools. One that cannot is left out alone.
pub(super) fn offered(
    composites: &[Arc<Composite>],
    tools: &Table,
    own_tools: &[&str],
) -> (Vec<Entry>, Vec<LeftOut>) {
    let mut offered = Vec::new();
    let mut left_out = Vec::new();
    for composite in composites {
        match composite.offered(tools, own_tools) {
            Ok(entry) => offered.push(entry),
            Err(reason) => {
                warn!(tool = &*composite.name, %reason, "a composite tool is not offered");
                left_out.push(LeftOut { tool: composite.name.clone(), reason });
            }
        }
    }
    (offered, left_out)
}

/// A composite tool that is not offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) tool: Box<str>,
    pub(crate) reason: NotOffered,
}

/// Why a composite tool is not offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotOffered {
    /// A tool of the virtual server itself has its name.
    #[error("the virtual server has a tool of this name")]
    Reserved,
    /// The tool of a step is not known. For another caller it may be.
    #[error("no backend has the tool {0:?} of a step")]
    NoTool(Box<str>),
    /// It promises more than its steps do.
    #[error("annotations.{0}: {1} is more than its steps promise")]
    Annotation(&'static str, bool),
}

fn object_schema(properties: &BTreeMap<String, OutputProperty>) -> Value {
    let properties: Map<String, Value> = properties
        .iter()
        .map(|(name, property)| {
            let mut schema = match property.inner() {
                Some(Ok(inner)) => object_schema(&inner),
                _ => json!({"type": property.type_.as_str()}),
            };
            if let Some(description) = &property.description {
                schema["description"] = description.as_str().into();
            }
            (name.clone(), schema)
        })
        .collect();
    json!({"type": "object", "properties": properties})
}

/// The hints of all steps together. A step without a hint makes it unknown.
struct Hints {
    reads_only: Option<bool>,
    destroys: Option<bool>,
    is_open: Option<bool>,
}

impl Default for Hints {
    fn default() -> Self {
        Self { reads_only: Some(true), destroys: Some(false), is_open: Some(false) }
    }
}

impl Hints {
    fn add(&mut self, tool: &Entry) {
        let hints = tool.hints();
        // A tool that only reads destroys nothing.
        let destroys = if hints.read_only == Some(true) { Some(false) } else { hints.destructive };
        self.reads_only = worse(self.reads_only, hints.read_only, false);
        self.destroys = worse(self.destroys, destroys, true);
        self.is_open = worse(self.is_open, hints.open_world, true);
    }

    /// The annotations, with those that are set. None may promise more than the steps do.
    fn with(&self, set: &ToolAnnotations) -> Result<Map<String, Value>, NotOffered> {
        let mut all = Map::new();
        let hints = [
            ("readOnlyHint", self.reads_only, set.read_only_hint, true),
            ("destructiveHint", self.destroys, set.destructive_hint, false),
            ("openWorldHint", self.is_open, set.open_world_hint, false),
        ];
        for (name, derived, set, good) in hints {
            if set == Some(good) && derived != Some(good) {
                return Err(NotOffered::Annotation(name, good));
            }
            if let Some(value) = set.or(derived) {
                all.insert(name.into(), value.into());
            }
        }
        all.extend(set.idempotent_hint.map(|hint| ("idempotentHint".to_owned(), hint.into())));
        all.extend(set.title.clone().map(|title| ("title".to_owned(), title.into())));
        Ok(all)
    }
}

/// The worse of two hints, where an unknown one is worse than a good one.
fn worse(one: Option<bool>, other: Option<bool>, bad: bool) -> Option<bool> {
    match (one, other) {
        _ if one == Some(bad) || other == Some(bad) => Some(bad),
        (Some(_), Some(_)) => Some(!bad),
        _ => None,
    }
}
