//! What is printed of the servers.

use serde_json::{Map, Value, json};

use super::running::{Phase, State};

/// How many names of tools are printed.
const NAMES: usize = 6;

/// A server in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Its kind and name.
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) state: State,
}

/// The servers with their addresses, and what to paste into a client.
pub(super) fn table(rows: &[Row]) -> String {
    let cells = |row: &Row| {
        let State { url, transport, phase, .. } = &row.state;
        let url = if url.is_empty() { "-" } else { url };
        let transport = if transport.is_empty() { "-" } else { transport };
        // What is the matter is a sentence, and was told.
        let offer = if row.state.message.is_empty() { tools(&row.state) } else { "see above".into() };
        [row.name.clone(), url.into(), transport.into(), phase.as_str().into(), offer]
    };
    let head = ["NAME", "URL", "TRANSPORT", "PHASE", "TOOLS"].map(ToOwned::to_owned);
    let lines: Vec<[String; 5]> = [head].into_iter().chain(rows.iter().map(cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let mut text = String::from("\n");
    for line in &lines {
        for (cell, width) in line.iter().zip(widths) {
            text.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(&line[4]);
        text.push('\n');
    }
    let clients = clients(rows);
    if clients != json!({}) {
        text.push_str("\nFor an MCP client:\n");
        text.push_str(&format!("{}\n", json!({"mcpServers": clients})));
    }
    text
}

/// What it offers.
fn tools(state: &State) -> String {
    match &state.tools {
        None => "-".into(),
        Some(tools) if tools.is_empty() => "none".into(),
        Some(tools) => {
            let more = tools.len().saturating_sub(NAMES);
            let names = tools.iter().take(NAMES).cloned().collect::<Vec<_>>().join(", ");
            if more == 0 { names } else { format!("{names} and {more} more") }
        }
    }
}

fn clients(rows: &[Row]) -> Value {
    let reachable = rows.iter().filter(|row| !row.state.url.is_empty());
    let entries = reachable.map(|row| {
        let type_ = if row.state.transport == "sse" { "sse" } else { "http" };
        (row.name.clone(), json!({"type": type_, "url": row.state.url}))
    });
    Value::Object(entries.collect::<Map<_, _>>())
}

/// One line about one server.
pub(super) fn line(row: &Row) -> String {
    let State { phase, message, url, .. } = &row.state;
    let more = match (phase, message.as_str()) {
        (Phase::Ready, "") => format!(": {} ({url})", tools(&row.state)),
        (_, "") => String::new(),
        (_, message) => format!(": {message}"),
    };
    format!("{}: {}{more}\n", row.owner, phase.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_where_each_server_is_and_what_it_offers() {
        let tools = |count: usize| Some((0..count).map(|number| format!("t{number}")).collect());
        let state = |phase, url: &str, tools, message: &str| State {
            phase,
            url: url.into(),
            transport: if url.is_empty() { "" } else { "streamable-http" },
            tools,
            message: message.into(),
        };
        let row = |name: &str, state| Row { owner: format!("MCPServer {name}"), name: name.into(), state };
        let rows = [
            row("demo", state(Phase::Ready, "http://127.0.0.1:1/mcp", tools(8), "")),
            row("a-b", state(Phase::Failed, "", None, "there is no program x")),
        ];
        let expected = "
NAME  URL                     TRANSPORT        PHASE   TOOLS
demo  http://127.0.0.1:1/mcp  streamable-http  Ready   t0, t1, t2, t3, t4, t5 and 2 more
a-b   -                       -                Failed  see above

For an MCP client:
{\"mcpServers\":{\"demo\":{\"type\":\"http\",\"url\":\"http://127.0.0.1:1/mcp\"}}}
";
        assert_eq!(table(&rows), expected);
        let ready = "MCPServer demo: Ready: t0, t1, t2, t3, t4, t5 and 2 more (http://127.0.0.1:1/mcp)\n";
        assert_eq!(line(&rows[0]), ready);
        assert_eq!(line(&rows[1]), "MCPServer a-b: Failed: there is no program x\n");
    }
}
