//! find_tool and call_tool.

use std::{
    collections::HashSet,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use http::Response;
use http_body_util::BodyExt;
use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use skep_gateway::{
    http::Body,
    message::{Exchange, Origin},
    middleware::SearchEvent,
};
use skep_mcp::{Envelope, List, Message, Method, Outcome, Raw, Rejection};
use skep_tool_search::Query;

use super::{
    ClientRequest, Front,
    answer::{Recipient, tool_error, translated},
    rpc::{self, RpcError},
    script::runs_scripts,
};
use crate::{
    catalog::{Catalog, Page, field},
    limits,
    search::{CallToolError, InnerCall, Search},
};

/// How many bytes of JSON are counted as a token. ToolHive counts the same.
const TOKEN: usize = 4;

/// The arguments of find_tool.
#[derive(Deserialize)]
struct FindToolArguments {
    tool_description: String,
    #[serde(default)]
    tool_keywords: Option<Keywords>,
}

/// The first keywords of a list. The others are read and dropped: a client may send very many.
#[derive(Debug)]
struct Keywords(Vec<String>);

impl<'de> Deserialize<'de> for Keywords {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Strings;

        impl<'de> Visitor<'de> for Strings {
            type Value = Keywords;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of strings")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Keywords, A::Error> {
                let mut keywords = Vec::new();
                while let Some(keyword) = list.next_element::<String>()? {
                    if keywords.len() < limits::SEARCH_KEYWORDS {
                        keywords.push(keyword);
                    }
                }
                Ok(Keywords(keywords))
            }
        }

        deserializer.deserialize_seq(Strings)
    }
}

/// The tools that a search returns, as JSON, and the size of all that the caller may use.
#[derive(Default)]
struct ToolMatches {
    tools: Vec<String>,
    baseline: usize,
}

impl Front {
    /// Looks after the search, for ever.
    pub(super) async fn run_search(&self) {
        match &self.search {
            Some(search) => search.run().await,
            None => std::future::pending().await,
        }
    }

    /// Replaces a call of call_tool by the call of the inner tool.
    pub(super) fn unwrap_call(&self, exchange: &mut Exchange) -> Result<(), Rejection> {
        if self.search.is_some() && InnerCall::unwrap(exchange)? {
            exchange.origin = Origin::Unwrapped;
        }
        Ok(())
    }

    /// The list of a client that searches: the search itself, and pinned tools.
    pub(super) fn searched_list(
        &self,
        request: &ClientRequest<'_>,
        search: &Arc<Search>,
        catalog: &Arc<Catalog>,
    ) -> Response<Body> {
        // The client will search soon.
        if !catalog.search.initialized() {
            let (search, catalog) = (search.clone(), catalog.clone());
            tokio::spawn(async move { catalog.index(&search).await });
        }
        let pinned = catalog.table(List::Tools).iter().filter(|entry| search.is_pinned(&entry.key));
        let tools: Vec<&str> = search
            .own_tools
            .iter()
            .map(|tool| &**tool)
            .chain(pinned.map(|entry| entry.json_for(request.era)))
            .collect();
        self.listed(request, List::Tools, &Page { items: format!("[{}]", tools.join(",")), next: None })
    }

    /// The response to a call of `call_tool` without a valid inner call.
    pub(super) fn invalid_call(&self, request: &ClientRequest<'_>, error: &CallToolError) -> Response<Body> {
        let took = request.exchange.started.elapsed();
        self.record_search(SearchEvent::Called { has_failed: true, took });
        self.tool_result(request, tool_error(&error.to_string()))
    }

    /// The response to `call_tool` for a tool that does not exist.
    pub(super) fn unknown_tool(&self, request: &ClientRequest<'_>, tool: &str) -> Response<Body> {
        self.record_search(SearchEvent::UnknownTool);
        self.tool_result(request, tool_error(&format!("tool not found: {tool}")))
    }

    /// The response with the result of a tool of the virtual server itself.
    pub(super) fn tool_result(&self, request: &ClientRequest<'_>, result: String) -> Response<Body> {
        let result = Raw::spelled(&result)
            .and_then(|result| {
                translated(result, Method::ToolsCall, request.era, Recipient::Client, &self.name).ok()
            })
            .unwrap_or(result);
        rpc::result(request.id, &result, request.era)
    }

    /// The response to `find_tool`.
    pub(super) async fn find_tool(
        &self,
        search: &Arc<Search>,
        request: &ClientRequest<'_>,
    ) -> Response<Body> {
        let started = Instant::now();
        let arguments = request.envelope.arguments();
        let wanted = arguments
            .and_then(|arguments| serde_json::from_str::<FindToolArguments>(arguments.as_str()).ok());
        let Some(wanted) = wanted else {
            self.record_search(SearchEvent::NotFound { took: started.elapsed() });
            let mistake = "tool_description must be a string, and tool_keywords a list of strings";
            return self.tool_result(request, tool_error(mistake));
        };
        let catalog = self.views.catalog(&request.session, &request.caller).await;
        let reason = self.views.unavailable(&catalog).or_else(|| catalog.conflict());
        let found = match reason {
            Some(reason) => Err(reason),
            None => self.found(search, request, &catalog, &wanted).await,
        };
        let found = match found {
            Ok(returned) => Ok(self.with_script(request, &catalog, returned).await),
            failed => failed,
        };
        match found {
            Ok(returned) => self.tool_result(request, self.result_of(&returned, started.elapsed())),
            Err(reason) => {
                self.record_search(SearchEvent::NotFound { took: started.elapsed() });
                RpcError::internal(reason).response(request.id, request.era)
            }
        }
    }

    /// Searches, and returns what the caller may use.
    async fn found(
        &self,
        search: &Arc<Search>,
        request: &ClientRequest<'_>,
        catalog: &Arc<Catalog>,
        wanted: &FindToolArguments,
    ) -> Result<ToolMatches, String> {
        let index = catalog.index(search).await.ok_or("the tools could not be indexed")?;
        let text = &wanted.tool_description;
        let keywords = wanted.tool_keywords.iter().flat_map(|Keywords(keywords)| keywords);
        let query = Query {
            text: &text[..text.floor_char_boundary(limits::SEARCH_TEXT)],
            keywords: keywords
                .map(|keyword| &keyword[..keyword.floor_char_boundary(limits::SEARCH_KEYWORD)])
                .collect(),
        };
        let found = search.meaning.search(&index, &query, request.caller.holder).await;
        if found.lacks_vectors {
            self.record_search(SearchEvent::NoVectors);
        }
        let all: Vec<&str> =
            catalog.table(List::Tools).iter().map(|entry| entry.json_for(request.era)).collect();
        let ranked = found.places.iter().filter_map(|place| all.get(*place).copied());
        if !self.chain.filters_lists() {
            let tools = ranked.take(search.max_results).map(str::to_owned).collect();
            return Ok(ToolMatches { tools, baseline: index.bytes });
        }
        // Best first, and then all others, which count for the baseline only.
        let is_found: HashSet<usize> = found.places.iter().copied().collect();
        let others =
            all.iter().enumerate().filter(|(place, _)| !is_found.contains(place)).map(|(_, tool)| *tool);
        let count = is_found.len();
        let ordered: Vec<(bool, &str)> =
            ranked.chain(others).enumerate().map(|(number, tool)| (number < count, tool)).collect();
        let mut returned = ToolMatches::default();
        for page in ordered.chunks(limits::PAGE_ITEMS) {
            self.add_permitted(request, page, search.max_results, &mut returned).await?;
        }
        Ok(returned)
    }

    /// The same, with the description for this caller of the tool that runs scripts.
    async fn with_script(
        &self,
        request: &ClientRequest<'_>,
        catalog: &Catalog,
        mut returned: ToolMatches,
    ) -> ToolMatches {
        let is_script = |tool: &&mut String| Raw::spelled(tool).is_some_and(|tool| runs_scripts(&tool));
        if self.scripts.is_some()
            && let Some(tool) = returned.tools.iter_mut().find(is_script)
            && let Some(described) = self.described_script(request, catalog).await
        {
            *tool = described;
        }
        returned
    }

    /// Adds those tools that the caller would be listed, by the same filters as those of lists.
    async fn add_permitted(
        &self,
        request: &ClientRequest<'_>,
        page: &[(bool, &str)],
        max: usize,
        returned: &mut ToolMatches,
    ) -> Result<(), String> {
        const FAILED: &str = "the tools could not be filtered";
        let tools: Vec<&str> = page.iter().map(|(_, tool)| *tool).collect();
        let list = Page { items: format!("[{}]", tools.join(",")), next: None };
        let response = self.listed(request, List::Tools, &list);
        let seen = self.chain.filter(request.exchange, response, &self.budget).await;
        let body = seen.into_body().collect().await.map_err(|_| FAILED)?.to_bytes();
        let envelope = Envelope::parse(&body).map_err(|_| FAILED)?;
        let items = match envelope.message() {
            Message::Response { outcome: Outcome::Result(result), .. } => result.get(field(List::Tools)),
            _ => None,
        };
        let items = items.and_then(|items| items.items().ok()).ok_or(FAILED)?;
        let mut rest = page.iter();
        for item in items {
            returned.baseline += item.as_str().len();
            // Filters keep the order.
            let is_found =
                rest.find(|(_, tool)| *tool == item.as_str()).is_some_and(|(is_found, _)| *is_found);
            if is_found && returned.tools.len() < max {
                returned.tools.push(item.as_str().to_owned());
            }
        }
        Ok(())
    }

    fn result_of(&self, returned: &ToolMatches, took: Duration) -> String {
        let bytes: usize = returned.tools.iter().map(String::len).sum();
        let (baseline, tokens) = (returned.baseline / TOKEN, bytes / TOKEN);
        let savings = if baseline == 0 { 0.0 } else { (1.0 - tokens as f64 / baseline as f64) * 100.0 };
        self.record_search(SearchEvent::Found { results: returned.tools.len(), savings, took });
        let metrics = format!(
            r#"{{"baseline_tokens":{baseline},"returned_tokens":{tokens},"savings_percent":{savings:.2}}}"#
        );
        let output = format!(r#"{{"tools":[{}],"token_metrics":{metrics}}}"#, returned.tools.join(","));
        let text = serde_json::Value::from(&*output);
        format!(r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{output}}}"#)
    }

    fn record_search(&self, event: SearchEvent) {
        if let Some(telemetry) = self.chain.telemetry() {
            telemetry.record_search(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_beyond_the_limit_are_read_and_dropped() {
        let list = |end: &str| format!(r#"["a"{}{end}]"#, r#","""#.repeat(10 * limits::SEARCH_KEYWORDS));
        let Keywords(keywords) = serde_json::from_str(&list("")).unwrap();
        assert_eq!((keywords.len(), &*keywords[0]), (limits::SEARCH_KEYWORDS, "a"));
        assert!(keywords.capacity() <= 2 * limits::SEARCH_KEYWORDS);
        assert!(serde_json::from_str::<Keywords>(&list(",1")).is_err(), "others must be strings");
    }
}
