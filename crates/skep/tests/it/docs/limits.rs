//! The numbers in docs/security.md are those of the constants: each number of the table of limits, and those of other rows.

use std::{collections::BTreeMap, fs};

use regex::Regex;

use super::root;

/// The rows of the table of limits, each with its numbers and the constants that have them.
const LIMITS: &[(&str, &[(&str, &str)])] = &[
    (
        "connections of a proxy or virtual server",
        &[
            ("10,000", "gateway::CONNECTIONS"),
            ("5,000", "gateway::CONNECTIONS_OF_AN_ADDRESS"),
            ("256", "gateway::PROBE_CONNECTIONS"),
            ("8", "gateway::PROBE_CONNECTIONS_OF_AN_ADDRESS"),
        ],
    ),
    (
        "the head of a request",
        &[
            ("64 KiB", "gateway::HEAD"),
            ("16 KiB", "gateway::SMALL_HEAD"),
            ("2,000", "gateway::LARGE_HEADS"),
            ("15 s", "gateway::FIRST_HEAD_TIME"),
        ],
    ),
    ("the body of a request", &[("8 MiB", "gateway::REQUEST_BODY")]),
    (
        "bodies in memory at once",
        &[
            ("128 MiB", "gateway::BODIES"),
            ("16 KiB", "proxy::STREAM_UNCOUNTED"),
            ("64 MiB", "gateway::BODIES / 2"),
        ],
    ),
    ("the arguments that a policy decision point gets", &[("1 MiB", "gateway::DECISION_ARGUMENTS")]),
    (
        "a response that is filtered",
        &[("32 MiB", "gateway::FILTERED_BODY"), ("8 MiB", "gateway::FILTERED_EVENT")],
    ),
    (
        "sessions",
        &[
            ("100,000", "gateway::SESSIONS"),
            ("1,000", "gateway::SESSIONS_OF_A_CALLER"),
            ("10,000", "gateway::SESSIONS_OF_AN_ADDRESS"),
            ("2 hours", "gateway::SESSION_LIFE"),
            ("30 minutes", "vmcp::SESSION_LIFE"),
        ],
    ),
    (
        "messages that wait for one client",
        &[
            ("256", "proxy::STREAM_EVENTS"),
            ("4 MiB", "proxy::STREAM_BYTES"),
            ("16 KiB", "proxy::STREAM_UNCOUNTED"),
        ],
    ),
    (
        "requests in flight at a stdio server",
        &[
            ("10,000", "proxy::STDIO_REQUESTS"),
            ("1,000", "proxy::STDIO_REQUESTS_OF_A_CALLER"),
            ("5,000", "proxy::STDIO_REQUESTS_OF_AN_ADDRESS"),
            ("256", "proxy::SESSION_REQUESTS"),
        ],
    ),
    (
        "connections after SIGTERM in a pod",
        &[
            ("5 s", "gateway::LEAVE_TIME"),
            ("10 s", "gateway::LATE_TIME"),
            ("29 s", "gateway::LEAVE_TIME + DRAIN_TIME"),
        ],
    ),
    (
        "requests to a webhook, a policy decision point or an embedding service at once",
        &[("256", "gateway::SERVICE_REQUESTS"), ("64", "gateway::SERVICE_REQUESTS_OF_A_CALLER")],
    ),
    (
        "lists of tools that are read at once for policies which read hints",
        &[
            ("4", "gateway::TOOL_LISTS_AT_ONCE"),
            ("30 s", "gateway::TOOL_LIST_TIME"),
            ("10,000", "gateway::KNOWN_TOOLS"),
        ],
    ),
    (
        "lists of a backend",
        &[("20,000", "vmcp::ITEMS"), ("1,000", "vmcp::PAGES"), ("8 MiB", "vmcp::LIST_BYTES")],
    ),
    ("a page of a list of a virtual server", &[("1,000", "vmcp::PAGE_ITEMS"), ("4 MiB", "vmcp::PAGE_BYTES")]),
    ("sessions at backends that are still being opened", &[("256", "vmcp::ENDING_UNOPENED")]),
    ("a request to a backend", &[("30 s", "vmcp::BACKEND_TIME")]),
    (
        "scripts",
        &[
            ("128 MiB", "vmcp::SCRIPT_MEMORY"),
            ("64 MiB", "vmcp::SCRIPT_MEMORY_OF_ONE"),
            ("50", "vmcp::SCRIPTS_OF_ONE"),
        ],
    ),
    (
        "calls that wait until the user has connected an account",
        &[("8", "vmcp::CONNECT_CALLS"), ("20 s", "vmcp::CONNECT_TIME")],
    ),
    (
        "calls that wait for input",
        &[
            ("1,000", "vmcp::PARKED_CALLS"),
            ("50", "vmcp::PARKED_CALLS_OF_ONE.caller"),
            ("200", "vmcp::PARKED_CALLS_OF_ONE.address"),
        ],
    ),
    ("names in metrics", &[("500", "gateway::LABEL_VALUES")]),
    ("the last calls that the console shows", &[("128", "gateway::LAST_CALLS")]),
    ("connections of users that the console shows", &[("100", "gateway::CONNECTIONS_SHOWN")]),
];

/// Numbers in other sentences.
const OTHERS: &[(&str, &str, &str)] = &[
    ("the connection is closed 15 s after the first byte of the head", "15 s", "gateway::FIRST_HEAD_TIME"),
    ("or after 120 s without one", "120 s", "gateway::IDLE_TIME"),
    ("408 after 30 s", "30 s", "gateway::BODY_TIME"),
    ("a client that reads nothing at all for 60 s", "60 s", "gateway::WRITE_TIME"),
    ("for one request that arrives within 3 s", "3 s", "gateway::PROBE_HEAD_TIME"),
    ("16 at once, each for 30 s", "30 s", "gateway::SCRAPE_TIME"),
    ("16 at once, each for 30 s", "16", "gateway::SCRAPES"),
    ("restoring take 32 MiB at most", "32 MiB", "gateway::SESSION_BYTES"),
    ("8,192 of them or 16 MiB", "8,192", "gateway::AUDIT_ENTRIES"),
    ("8,192 of them or 16 MiB", "16 MiB", "gateway::AUDIT_BYTES"),
    ("the audit log has 1 KiB of each", "1 KiB", "gateway::AUDIT_TEXT"),
    ("a stdio server for 60 s", "60 s", "proxy::REQUEST_TIME"),
];

/// The constants of all crates, as `crate::NAME`. Times are in milliseconds.
fn constants() -> BTreeMap<String, u64> {
    let declared = Regex::new(r"(?s)const ([A-Z_]+): (?:usize|u64|u32|Duration) =\s*(.+?);\n").unwrap();
    let shares =
        Regex::new(r"const ([A-Z_]+): Shares = Shares \{ caller: (\d+), address: (\d+) \};").unwrap();
    let mut constants = BTreeMap::new();
    for name in ["auth", "authserver", "console", "gateway", "proxy", "script", "vmcp"] {
        let source = fs::read_to_string(root().join(format!("crates/{name}/src/limits.rs"))).unwrap();
        for found in declared.captures_iter(&source) {
            if let Some(value) = value(&found[2]) {
                constants.insert(format!("{name}::{}", &found[1]), value);
            }
        }
        for found in shares.captures_iter(&source) {
            for (holder, most) in [("caller", &found[2]), ("address", &found[3])] {
                constants.insert(format!("{name}::{}.{holder}", &found[1]), most.parse().unwrap());
            }
        }
    }
    constants
}

/// What an expression of numbers is worth, if it is one.
fn value(expression: &str) -> Option<u64> {
    let expression = expression.trim();
    let inner = |prefix: &str| expression.strip_prefix(prefix)?.strip_suffix(')');
    if let Some(seconds) = inner("Duration::from_secs(") {
        return Some(value(seconds)? * 1_000);
    }
    if let Some(millis) = inner("Duration::from_millis(") {
        return value(millis);
    }
    if let Some((number, bits)) = expression.split_once(" << ") {
        return Some(value(number)? << value(bits)?);
    }
    let factors: Option<Vec<u64>> =
        expression.split('*').map(|factor| factor.trim().replace('_', "").parse().ok()).collect();
    Some(factors?.into_iter().product())
}

/// What a sum or a part of constants is worth.
fn worth(constants: &BTreeMap<String, u64>, expression: &str) -> u64 {
    let of = |name: &str| *constants.get(name).unwrap_or_else(|| panic!("there is no constant {name}"));
    if let Some((name, part)) = expression.split_once(" / ") {
        return of(name) / part.parse::<u64>().unwrap();
    }
    match expression.split_once(" + ") {
        Some((name, other)) => of(name) + of(&format!("{}::{other}", name.split_once("::").unwrap().0)),
        None => of(expression),
    }
}

/// What a number in a text is worth.
fn read(number: &str) -> u64 {
    let (digits, unit) = number.split_once(' ').unwrap_or((number, ""));
    let factor = match unit {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "s" => 1_000,
        "minutes" => 60_000,
        "hours" => 3_600_000,
        unit => panic!("the unit {unit} is not known"),
    };
    digits.replace(',', "").parse::<u64>().unwrap() * factor
}

#[test]
fn every_number_of_the_table_of_limits_is_that_of_its_constant() {
    let constants = constants();
    let text = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let (_, table) = text.split_once("\n## Limits\n").unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---") && !line.starts_with("| what"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let digits = Regex::new(r"[0-9][0-9,]*( (KiB|MiB|s|minutes|hours)\b)?").unwrap();
    // What is no limit of a process.
    let is_other = |number: &str, row: &str| row.starts_with("connections of users") && number == "100,000";
    for row in &rows {
        let known =
            LIMITS.iter().filter(|(what, _)| row[1].starts_with(what)).max_by_key(|(what, _)| what.len());
        let (_, numbers) = known.unwrap_or_else(|| panic!("the row {:?} is not checked", row[1]));
        for (number, constant) in *numbers {
            assert_eq!(read(number), worth(&constants, constant), "{constant} in the row {:?}", row[1]);
        }
        let written = digits.find_iter(row[2]).map(|found| found.as_str().trim_end_matches(','));
        let written: Vec<&str> = written.filter(|number| !is_other(number, row[1])).collect();
        let expected: Vec<&str> = numbers.iter().map(|(number, _)| *number).collect();
        assert_eq!(written, expected, "the numbers of the row {:?}", row[1]);
    }
    assert_eq!(rows.len(), LIMITS.len(), "each row is there");
    for (sentence, number, constant) in OTHERS {
        assert!(text.contains(sentence), "{sentence:?} is not there");
        assert!(sentence.contains(number));
        assert_eq!(read(number), worth(&constants, constant), "{constant} in {sentence:?}");
    }
}
