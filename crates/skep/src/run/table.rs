//! The table of servers.

use serde_json::{Map, Value, json};
use skep_console::Key;

use super::running::State;
use crate::output::plain;

/// The maximum number of tool names.
const NAMES: usize = 6;
/// The maximum length of a tool name.
const NAME: usize = 40;
/// The longest of the phases.
const PHASE: usize = "Pending".len();
/// The minimum width of the last column.
const LEAST: usize = 12;

/// A server in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The position of its problem.
    pub(super) place: String,
    /// Its kind and name.
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) key: Key,
    pub(super) state: State,
}

/// The columns of a table, to which a row is added whenever a server changes.
pub(super) struct Table {
    /// The widths of the first three, or none if the terminal is too narrow.
    widths: Option<[usize; 3]>,
    /// The width of the tools column.
    room: usize,
}

impl Table {
    /// A table for these servers, on a terminal with so many columns.
    pub(super) fn new(rows: &[Row], columns: Option<usize>) -> Self {
        let all: Vec<[&str; 3]> =
            [["NAME", "URL", "TRANSPORT"]].into_iter().chain(rows.iter().map(known)).collect();
        let width =
            |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths = [0, 1, 2].map(width);
        let taken = widths.iter().sum::<usize>() + PHASE + 2 * 4;
        match columns {
            None => Self { widths: Some(widths), room: usize::MAX },
            Some(columns) if columns >= taken + LEAST => Self { widths: Some(widths), room: columns - taken },
            Some(columns) => Self { widths: None, room: columns.saturating_sub(2) },
        }
    }

    pub(super) fn head(&self) -> String {
        self.widths
            .map_or_else(String::new, |widths| line(widths, ["NAME", "URL", "TRANSPORT"], "PHASE", "TOOLS"))
    }

    /// A server, and below it its problem.
    pub(super) fn row(&self, row: &Row) -> String {
        let State { phase, message, url, transport, .. } = &row.state;
        let offer = tools(&row.state, self.room);
        let mut text = match self.widths {
            Some(widths) => line(widths, known(row), phase.as_str(), &offer),
            None => {
                let place = if url.is_empty() { String::new() } else { format!("  {url} ({transport})\n") };
                format!("{}: {}\n{place}  {offer}\n", row.name, phase.as_str())
            }
        };
        if !message.is_empty() {
            text.push_str(&format!("  {}{}: {}\n", row.place, row.owner, plain(message)));
        }
        text
    }
}

fn line(widths: [usize; 3], cells: [&str; 3], phase: &str, tools: &str) -> String {
    let mut text = String::new();
    for (cell, width) in cells.into_iter().zip(widths) {
        text.push_str(&format!("{cell:<width$}  "));
    }
    text.push_str(&format!("{phase:<PHASE$}  {tools}\n"));
    text
}

/// The cells that are known from the start.
fn known(row: &Row) -> [&str; 3] {
    let or_nothing = |text| if str::is_empty(text) { "-" } else { text };
    [&row.name, or_nothing(&row.state.url), or_nothing(row.state.transport)]
}

/// The configuration of a client, for the servers that have a URL.
pub(super) fn for_clients(rows: &[Row]) -> String {
    let reachable = rows.iter().filter(|row| !row.state.url.is_empty());
    let entries = reachable.map(|row| {
        let type_ = if row.state.transport == "sse" { "sse" } else { "http" };
        (client_name(&row.name), json!({"type": type_, "url": row.state.url}))
    });
    let clients = Value::Object(entries.collect::<Map<_, _>>());
    format!("\nFor an MCP client:\n{}\n\n", json!({"mcpServers": clients}))
}

/// The name of a server for clients, which accept letters, digits, hyphens and underscores.
pub(super) fn client_name(name: &str) -> String {
    name.replace(['/', '.'], "-")
}

/// The tools: as many names as fit.
fn tools(state: &State, room: usize) -> String {
    let Some(tools) = &state.tools else { return "-".into() };
    if tools.is_empty() {
        return "none".into();
    }
    let names: Vec<String> =
        tools.iter().take(NAMES).map(|name| plain(name).chars().take(NAME).collect()).collect();
    let some = |count: usize| match (tools.len() - count, count) {
        (0, _) => names[..count].join(", "),
        (all, 0) => format!("{all} tools"),
        (more, _) => format!("{} and {more} more", names[..count].join(", ")),
    };
    let fits = |text: &String| text.chars().count() <= room;
    (0..=names.len()).rev().map(some).find(fits).unwrap_or_else(|| some(0))
}

#[cfg(test)]
mod tests {
    use super::{super::running::Phase, *};

    fn row(name: &str, phase: Phase, tools: usize, message: &str) -> Row {
        let has_place = message.is_empty();
        let state = State {
            phase,
            url: if has_place { "http://127.0.0.1:1/mcp".into() } else { String::new() },
            transport: if has_place { "streamable-http" } else { "" },
            tools: has_place.then(|| (0..tools).map(|number| format!("t{number}")).collect()),
            message: message.into(),
            backends: Vec::new(),
        };
        let key = Key::new("MCPServer", "default", name);
        Row { place: String::new(), owner: format!("MCPServer {name}"), name: name.into(), key, state }
    }

    fn rows() -> [Row; 2] {
        [row("demo", Phase::Ready, 8, ""), row("a-b", Phase::Failed, 0, "program x not found")]
    }

    fn printed(columns: Option<usize>) -> String {
        let table = Table::new(&rows(), columns);
        table.head() + &rows().iter().map(|row| table.row(row)).collect::<String>()
    }

    #[test]
    fn the_table_shows_the_url_and_the_tools_of_each_server() {
        let expected = "\
NAME  URL                     TRANSPORT        PHASE    TOOLS
demo  http://127.0.0.1:1/mcp  streamable-http  Ready    t0, t1, t2, t3, t4, t5 and 2 more
a-b   -                       -                Failed   -
  MCPServer a-b: program x not found
";
        assert_eq!(printed(None), expected);
        let pasted = "\nFor an MCP client:\n{\"mcpServers\":{\"demo\":{\"type\":\"http\",\"url\":\"http://127.0.0.1:1/mcp\"}}}\n\n";
        assert_eq!(for_clients(&rows()), pasted);
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_tools_and_a_very_narrow_one_no_columns() {
        let narrow = printed(Some(76));
        assert!(narrow.contains("Ready    t0, t1 and 6 more\n"), "{narrow}");
        let widest = narrow.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(76), "{narrow}");
        let very_narrow = "\
demo: Ready
  http://127.0.0.1:1/mcp (streamable-http)
  t0, t1, t2, t3, t4, t5 and 2 more
a-b: Failed
  -
  MCPServer a-b: program x not found
";
        assert_eq!(printed(Some(40)), very_narrow);
        assert!(printed(Some(10)).contains("\n  8 tools\n"));
    }

    #[test]
    fn tool_names_cannot_control_the_terminal() {
        let mut stranger = row("demo", Phase::Ready, 1, "");
        stranger.state.tools = Some(vec!["\u{1b}[2Jx\n".into(), "y".repeat(100)]);
        let printed = Table::new(&[], None).row(&stranger);
        assert!(printed.ends_with(&format!("\u{fffd}[2Jx\u{fffd}, {}\n", "y".repeat(40))), "{printed:?}");
    }
}
