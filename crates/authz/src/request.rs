//! The parts of a request: principal, action and resource.

use serde_json::{Map, Value};

/// Who acts.
#[derive(Clone, Copy, Debug)]
pub struct Principal<'a> {
    /// What it is.
    pub kind: PrincipalKind,
    /// The subject of the token, or the name of the workflow. Without one, everything is denied.
    pub subject: &'a str,
    /// The claims of the token.
    pub claims: &'a Map<String, Value>,
}

/// What a principal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrincipalKind {
    /// The caller.
    #[default]
    Client,
    /// A workflow of a virtual server that runs as itself. It has no claims.
    Workflow,
}

impl PrincipalKind {
    pub(crate) const ALL: [Self; 2] = [Self::Client, Self::Workflow];

    /// The type of its entities.
    pub(crate) const fn entity_type(self) -> &'static str {
        match self {
            Self::Client => "Client",
            Self::Workflow => "Workflow",
        }
    }
}

/// A feature of an MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feature {
    /// Tools, which are called.
    Tool,
    /// Prompts, which are fetched.
    Prompt,
    /// Resources, which are read.
    Resource,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tool, Self::Prompt, Self::Resource];

    /// The action on it, which also decides whether an item of a list is visible.
    pub const fn action(self) -> Action {
        match self {
            Self::Tool => Action::CallTool,
            Self::Prompt => Action::GetPrompt,
            Self::Resource => Action::ReadResource,
        }
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// The type of its entities.
    pub(crate) const fn entity_type(self) -> &'static str {
        match self {
            Self::Tool => "Tool",
            Self::Prompt => "Prompt",
            Self::Resource => "Resource",
        }
    }
}

/// An action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// `tools/call`
    CallTool,
    /// `prompts/get`
    GetPrompt,
    /// `resources/read`, and the subscription to a resource.
    ReadResource,
}

impl Action {
    /// The feature that it acts on.
    pub const fn feature(self) -> Feature {
        match self {
            Self::CallTool => Feature::Tool,
            Self::GetPrompt => Feature::Prompt,
            Self::ReadResource => Feature::Resource,
        }
    }

    /// Its name in policies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CallTool => "call_tool",
            Self::GetPrompt => "get_prompt",
            Self::ReadResource => "read_resource",
        }
    }

    /// The value of the resource's attribute `operation`.
    pub(crate) const fn operation(self) -> &'static str {
        match self {
            Self::CallTool => "call",
            Self::GetPrompt => "get",
            Self::ReadResource => "read",
        }
    }
}

/// The resource of an action. The action determines its feature.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    /// The name of a tool or prompt as the server knows it, or the URI of a resource.
    pub id: &'a str,
    /// The annotations of a tool. Other features have none.
    pub hints: Hints,
}

impl<'a> Resource<'a> {
    /// A resource without hints.
    pub fn new(id: &'a str) -> Self {
        Self { id, hints: Hints::default() }
    }
}

/// The annotations of a tool, as far as the server gave them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hints {
    /// `readOnlyHint`
    pub read_only: Option<bool>,
    /// `destructiveHint`
    pub destructive: Option<bool>,
    /// `idempotentHint`
    pub idempotent: Option<bool>,
    /// `openWorldHint`
    pub open_world: Option<bool>,
}

impl Hints {
    pub(crate) const NAMES: [&str; 4] =
        ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

    /// The hints that are set, by their names in MCP and in policies.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let values = [self.read_only, self.destructive, self.idempotent, self.open_world];
        Self::NAMES.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)))
    }
}
