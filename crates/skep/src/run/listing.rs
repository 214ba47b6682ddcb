//! The table of `skep ls`.

use super::runs::RunRecord;

const HEAD: [&str; 6] = ["RUN", "NAME", "URL", "TRANSPORT", "PHASE", "TOOLS"];

/// The servers of some runs, each in a line.
pub(super) fn listing(runs: &[RunRecord]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    for RunRecord { name, servers, .. } in runs {
        for server in servers {
            let or_nothing = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
            let tools = server.tools.as_ref().map_or_else(String::new, |tools| tools.len().to_string());
            let cells = [name, &server.name, &server.url, &server.transport, &server.phase, &tools];
            rows.push(cells.map(|cell| or_nothing(cell)));
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::record::ServerRecord, *};

    #[test]
    fn each_server_of_each_run_is_a_line() {
        let server = |name: &str, url: &str, tools: Option<usize>| ServerRecord {
            name: name.into(),
            kind: "MCPServer".into(),
            url: url.into(),
            transport: "sse".into(),
            phase: "Ready".into(),
            tools: tools.map(|count| vec![String::new(); count]),
            message: String::new(),
        };
        let run = RunRecord {
            name: "team".into(),
            pid: 1,
            detached: true,
            started: String::new(),
            sources: Vec::new(),
            servers: vec![server("fetch", "http://127.0.0.1:1/sse", Some(2)), server("x", "", None)],
        };
        let expected = "\
RUN   NAME   URL                     TRANSPORT  PHASE  TOOLS
team  fetch  http://127.0.0.1:1/sse  sse        Ready  2
team  x      -                       sse        Ready  -
";
        assert_eq!(listing(&[run]), expected);
    }
}
