//! The table of `skep ls`.

use super::{record::ServerRecord, runs::RunRecord};
use crate::output::{plain, table};

const HEAD: [&str; 6] = ["RUN", "NAME", "URL", "TRANSPORT", "PHASE", "TOOLS"];

/// The servers of some runs, each in a line, and below it its problem.
pub(super) fn listing(runs: &[RunRecord]) -> String {
    let servers: Vec<_> =
        runs.iter().flat_map(|run| run.servers.iter().map(|server| (run.name.as_str(), server))).collect();
    let rows: Vec<[String; 6]> = servers.iter().map(|(run, server)| row(run, server)).collect();
    let table = table(HEAD, &rows);
    let mut lines = table.lines();
    let mut text = lines.next().map(|head| format!("{head}\n")).unwrap_or_default();
    for (line, (_, server)) in lines.zip(&servers) {
        text.push_str(&format!("{line}\n"));
        if !server.message.is_empty() {
            text.push_str(&format!("  {} {}: {}\n", server.kind, server.name, plain(&server.message)));
        }
    }
    text
}

fn row(run: &str, server: &ServerRecord) -> [String; 6] {
    let or_nothing = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let tools = server.tools.as_ref().map_or_else(String::new, |tools| tools.len().to_string());
    [run, &server.name, &server.url, &server.transport, &server.phase, &tools].map(or_nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_of_each_run_is_a_line_with_its_problem_below() {
        let server = |name: &str, url: &str, tools: Option<usize>, message: &str| ServerRecord {
            name: name.into(),
            kind: "MCPServer".into(),
            url: url.into(),
            transport: "sse".into(),
            phase: "Ready".into(),
            tools: tools.map(|count| vec![String::new(); count]),
            message: message.into(),
        };
        let run = RunRecord {
            name: "team".into(),
            pid: 1,
            detached: true,
            started: String::new(),
            sources: Vec::new(),
            console: String::new(),
            servers: vec![
                server("fetch", "http://127.0.0.1:1/sse", Some(2), ""),
                server("x", "", None, "no\u{1b}"),
            ],
        };
        let expected = "\
RUN   NAME   URL                     TRANSPORT  PHASE  TOOLS
team  fetch  http://127.0.0.1:1/sse  sse        Ready  2
team  x      -                       sse        Ready  -
  MCPServer x: no\u{fffd}
";
        assert_eq!(listing(&[run]), expected);
    }
}
