//! What a proxy would do with a request, without a server.

use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_gateway::middleware::{Caller, Explanation, explain, explain_list};

use crate::{ConfigError, middlewares::middlewares, proxy::context};

/// What each middleware of a proxy decides about a request, up to the first that rejects it.
pub async fn explain_request(
    config: &RunConfig,
    caller: &Caller,
    method: &str,
    params: &Value,
) -> Result<Vec<Explanation>, ConfigError> {
    let mut exchange = caller.request(method, params)?;
    explain(&middlewares(config)?, &context(config), &mut exchange).await
}

/// Which of these tools a caller would be listed, under the names that it sees.
pub async fn listed_tools(
    config: &RunConfig,
    caller: &Caller,
    tools: &[String],
) -> Result<Vec<String>, ConfigError> {
    let tools = tools.iter().map(|name| json!({"name": name})).collect();
    explain_list(&middlewares(config)?, &context(config), caller, tools).await
}
