//! The methods of MCP, of all revisions, and their targets.

use crate::{list::List, target::TargetKind};

macro_rules! methods {
    ($($variant:ident = $name:literal,)*) => {
        /// A method that MCP defines in some revision.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
            /// Any other: of an extension, or of a revision to come.
            Other,
        }

        impl Method {
            /// Every method that has a name here.
            pub const KNOWN: &[Self] = &[$(Self::$variant,)*];

            /// The method of this name. Names are case-sensitive.
            pub fn named(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    _ => Self::Other,
                }
            }

            /// Its name on the wire.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => Some($name),)*
                    Self::Other => None,
                }
            }
        }
    };
}

methods! {
    Initialize = "initialize",
    Ping = "ping",
    ServerDiscover = "server/discover",
    SubscriptionsListen = "subscriptions/listen",
    ToolsList = "tools/list",
    ToolsCall = "tools/call",
    PromptsList = "prompts/list",
    PromptsGet = "prompts/get",
    ResourcesList = "resources/list",
    ResourceTemplatesList = "resources/templates/list",
    ResourcesRead = "resources/read",
    ResourcesSubscribe = "resources/subscribe",
    ResourcesUnsubscribe = "resources/unsubscribe",
    LoggingSetLevel = "logging/setLevel",
    CompletionComplete = "completion/complete",
    TasksList = "tasks/list",
    TasksGet = "tasks/get",
    TasksResult = "tasks/result",
    TasksUpdate = "tasks/update",
    TasksCancel = "tasks/cancel",
    SamplingCreateMessage = "sampling/createMessage",
    ElicitationCreate = "elicitation/create",
    RootsList = "roots/list",
    Initialized = "notifications/initialized",
    Cancelled = "notifications/cancelled",
    Progress = "notifications/progress",
    LogMessage = "notifications/message",
    ToolsListChanged = "notifications/tools/list_changed",
    PromptsListChanged = "notifications/prompts/list_changed",
    ResourcesListChanged = "notifications/resources/list_changed",
    ResourcesUpdated = "notifications/resources/updated",
    RootsListChanged = "notifications/roots/list_changed",
    TaskStatus = "notifications/tasks/status",
    ElicitationComplete = "notifications/elicitation/complete",
    SubscriptionsAcknowledged = "notifications/subscriptions/acknowledged",
}

impl Method {
    /// The target of a message of this method, if it has one.
    pub fn target(self) -> Option<TargetKind> {
        Some(match self {
            Self::ToolsCall => TargetKind::Tool,
            Self::PromptsGet => TargetKind::Prompt,
            Self::ResourcesRead
            | Self::ResourcesSubscribe
            | Self::ResourcesUnsubscribe
            | Self::ResourcesUpdated => TargetKind::Resource,
            Self::TasksGet | Self::TasksResult | Self::TasksUpdate | Self::TasksCancel | Self::TaskStatus => {
                TargetKind::Task
            }
            Self::Initialize => TargetKind::Client,
            Self::LoggingSetLevel => TargetKind::Level,
            Self::CompletionComplete => TargetKind::Reference,
            Self::Progress => TargetKind::ProgressToken,
            Self::Cancelled => TargetKind::Request,
            Self::ToolsList
            | Self::PromptsList
            | Self::ResourcesList
            | Self::ResourceTemplatesList
            | Self::TasksList => TargetKind::Cursor,
            _ => return None,
        })
    }

    /// The list that its result holds.
    pub fn list(self) -> Option<List> {
        match self {
            Self::ToolsList => Some(List::Tools),
            Self::PromptsList => Some(List::Prompts),
            Self::ResourcesList => Some(List::Resources),
            Self::ResourceTemplatesList => Some(List::ResourceTemplates),
            _ => None,
        }
    }

    /// Whether it is idempotent, so that it may be sent again when it is unknown whether it arrived.
    pub fn is_repeatable(self) -> bool {
        matches!(
            self,
            Self::Initialize
                | Self::Initialized
                | Self::Ping
                | Self::ServerDiscover
                | Self::ToolsList
                | Self::PromptsList
                | Self::PromptsGet
                | Self::ResourcesList
                | Self::ResourceTemplatesList
                | Self::ResourcesRead
                | Self::LoggingSetLevel
                | Self::CompletionComplete
                | Self::TasksList
                | Self::TasksGet
        )
    }

    /// Whether 2026-07-28 requires the `Mcp-Name` header on its requests.
    pub fn requires_name_header(self) -> bool {
        matches!(self, Self::ToolsCall | Self::PromptsGet | Self::ResourcesRead)
    }
}
