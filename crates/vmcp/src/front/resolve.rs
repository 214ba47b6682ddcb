//! Resolves the name in a request to the one thing that it means.

use std::sync::Arc;

use serde_json::json;
use skep_gateway::message::Origin as RequestOrigin;
use skep_mcp::{Era, Kind, List, Method, Raw};

use super::{
    ClientRequest, Front,
    rpc::{self, RpcError},
};
use crate::{
    catalog::{BackendTool, Catalog, Composite, Origin, Provider},
    limits,
    search::{CALL_TOOL, CallToolError, FIND_TOOL, InnerCall, Search},
    views::Found,
};

/// The target of a request. Nothing decides by its name again.
pub(super) enum Target {
    /// An item of a backend.
    Backend(Route),
    /// A composite tool, among the tools of this catalog.
    Workflow(Arc<Composite>, Arc<Catalog>),
    /// The tool that runs scripts, with the tools of this catalog.
    Script(Arc<Catalog>),
    /// The tool that finds tools.
    Search(Arc<Search>),
    /// A call of `call_tool` without a valid inner call.
    InvalidCall(CallToolError),
    /// A completion for an item that no backend has.
    NoCompletion,
}

/// The reason why a request has no target.
pub(super) enum Unresolved {
    /// The response of JSON-RPC.
    Error(RpcError),
    /// A tool that a client calls by `call_tool` does not exist.
    UnknownTool(Box<str>),
}

impl From<RpcError> for Unresolved {
    fn from(error: RpcError) -> Self {
        Self::Error(error)
    }
}

/// The backend of an item, with the name of the item there.
pub(super) struct Route {
    pub(super) backend: Arc<str>,
    /// The parameter that has the name, the object that it is in, and the name at the backend.
    pub(super) rename: Option<(&'static str, Option<&'static str>, Box<str>)>,
    /// The schema of a tool that has parameters in headers, as JSON.
    pub(super) schema: Option<Box<str>>,
}

impl Route {
    /// The route to a tool.
    pub(super) fn to(tool: BackendTool<'_>) -> Self {
        let schema = tool.entry.mirrors_parameters().then(|| tool.entry.json().into());
        Self { schema, ..Self::renamed(tool.origin, None) }
    }

    /// The route to an item that has another name at its backend.
    fn renamed(origin: &Origin, within: Option<&'static str>) -> Self {
        let rename = Some(("name", within, origin.name.clone()));
        Self { rename, ..Self::located(origin) }
    }

    /// The route to an item that has one address everywhere.
    fn located(origin: &Origin) -> Self {
        Self { backend: origin.backend.clone(), rename: None, schema: None }
    }
}

/// An entry of a catalog, before the catalog is known to be complete.
enum Entry {
    Backend(Route),
    Composite(Arc<Composite>),
    Script,
    NoCompletion,
}

impl Entry {
    /// Its place. A script needs the lists of all backends.
    fn found(&self) -> Option<Found> {
        match self {
            Self::Backend(route) => {
                Some(Found { backend: Some(route.backend.clone()), is_named: route.rename.is_some() })
            }
            Self::Composite(_) => Some(Found { backend: None, is_named: true }),
            Self::Script | Self::NoCompletion => None,
        }
    }
}

impl Front {
    /// Resolves the target of a request. Waits for the lists of backends only as long as these can change the result.
    pub(super) async fn resolve(&self, request: &ClientRequest<'_>) -> Result<Target, Unresolved> {
        if let Some(target) = self.search_target(request)? {
            return Ok(target);
        }
        let find = |catalog: &Catalog| entry_of(request, catalog).ok()?.found();
        let catalog = self.views.catalog_with(&request.session, &request.caller, find).await;
        let (entry, catalog) = match entry_of(request, &catalog) {
            Err(error) => {
                let complete = self.views.complete(&request.session);
                let is_same = Arc::ptr_eq(&complete, &catalog);
                let entry = if is_same { Err(error) } else { entry_of(request, &complete) };
                (entry, complete)
            }
            entry => (entry, catalog),
        };
        match entry {
            Ok(Entry::Backend(route)) => Ok(Target::Backend(route)),
            Ok(Entry::Composite(composite)) => Ok(Target::Workflow(composite, catalog)),
            Ok(Entry::Script) => Ok(Target::Script(catalog)),
            Ok(Entry::NoCompletion) => Ok(Target::NoCompletion),
            Err(_) if request.exchange.origin.is_unwrapped() => {
                Err(Unresolved::UnknownTool(name(request).into()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The target of a client that searches for tools, if the search decides.
    fn search_target(&self, request: &ClientRequest<'_>) -> Result<Option<Target>, RpcError> {
        let search = self.search.as_ref().filter(|_| request.method == Method::ToolsCall);
        let Some(search) = search else { return Ok(None) };
        let tool = name(request);
        let is_direct = matches!(request.exchange.origin, RequestOrigin::Client);
        match &*tool {
            FIND_TOOL => Ok(Some(Target::Search(search.clone()))),
            // One with a valid inner call has been unwrapped.
            CALL_TOOL if is_direct => {
                Ok(InnerCall::of(request.envelope.arguments()).err().map(Target::InvalidCall))
            }
            _ if is_direct && !search.is_pinned(&tool) => Err(RpcError::invalid(format!(
                "unknown tool {tool:?}: find tools with {FIND_TOOL}, and call them with {CALL_TOOL}"
            ))),
            _ => Ok(None),
        }
    }
}

/// The entry of a catalog that a request names.
fn entry_of(request: &ClientRequest<'_>, catalog: &Catalog) -> Result<Entry, RpcError> {
    let name = name(request);
    let unknown =
        |what: &str| RpcError::invalid(format!("unknown {what} {name:?}{}", request.session.unlisted()));
    let prompt = |within| {
        let origin = catalog.table(List::Prompts).get(&name)?.origin()?;
        Some(Entry::Backend(Route::renamed(origin, within)))
    };
    let resource = || {
        let origin = catalog.resource(&name)?.origin()?;
        Some(Entry::Backend(Route::located(origin)))
    };
    match request.method {
        Method::ToolsCall => {
            check_arguments(request)?;
            let entry = catalog.table(List::Tools).get(&name).ok_or_else(|| unknown("tool"))?;
            Ok(match &entry.provider {
                Provider::Backend(origin) => Entry::Backend(Route::to(BackendTool { entry, origin })),
                Provider::Composite(composite) => Entry::Composite(composite.clone()),
                Provider::Scripts => Entry::Script,
            })
        }
        Method::PromptsGet => {
            check_arguments(request)?;
            prompt(None).ok_or_else(|| unknown("prompt"))
        }
        Method::CompletionComplete => {
            let reference = request.envelope.params().and_then(|params| params.get("ref"));
            let kind = reference.and_then(|reference| reference.get("type")).and_then(Raw::as_text);
            match kind.as_deref() {
                Some("ref/prompt") => Ok(prompt(Some("ref")).unwrap_or(Entry::NoCompletion)),
                Some("ref/resource") => Ok(resource().unwrap_or(Entry::NoCompletion)),
                _ => Err(RpcError::invalid("params.ref.type must be ref/prompt or ref/resource")),
            }
        }
        _ if name.is_empty() => {
            let error = RpcError::invalid("params.uri is missing");
            Err(RpcError { data: Some(r#"{"uri":""}"#.into()), ..error })
        }
        _ => resource().ok_or_else(|| unknown_resource(&name, request)),
    }
}

/// Rejects arguments of another type than the method has.
fn check_arguments(request: &ClientRequest<'_>) -> Result<(), RpcError> {
    let arguments = request.envelope.arguments();
    if arguments.is_some_and(|arguments| !matches!(arguments.kind(), Kind::Object | Kind::Null)) {
        return Err(RpcError::invalid("params.arguments must be an object"));
    }
    if request.method == Method::PromptsGet {
        let values = arguments.and_then(|arguments| arguments.entries().ok()).unwrap_or_default();
        if values.iter().any(|(_, value)| value.kind() != Kind::Text) {
            return Err(RpcError::invalid("params.arguments of a prompt must be strings"));
        }
    }
    Ok(())
}

/// The name in a request.
fn name(request: &ClientRequest<'_>) -> String {
    request.envelope.target().map(|target| target.name().into_owned()).unwrap_or_default()
}

/// Before 2026-07-28, an unknown resource has a code of its own.
fn unknown_resource(uri: &str, request: &ClientRequest<'_>) -> RpcError {
    if uri.len() > limits::URI {
        return RpcError::invalid("params.uri is too long");
    }
    const RESOURCE_NOT_FOUND: i64 = -32002;
    let code = if request.era == Era::Modern { rpc::INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
    let error = RpcError::new(code, format!("unknown resource {uri:?}{}", request.session.unlisted()));
    RpcError { data: Some(json!({"uri": uri}).to_string().into()), ..error }
}
