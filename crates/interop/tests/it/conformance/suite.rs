//! The official conformance suite of MCP, and its results.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use serde_json::Value;
use tokio::process::Command;

use crate::programs::{folder, install};

/// The results of the suite, by scenario.
pub(crate) type Findings = BTreeMap<String, Vec<Check>>;

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Check {
    id: String,
    /// Several checks may have the same id; their names differ.
    pub(crate) name: String,
    pub(crate) status: String,
    error: String,
}

impl Check {
    /// Whether both passed or both failed, whatever the message.
    pub(crate) fn has_same_status(&self, other: &Self) -> bool {
        (&self.id, &self.name, &self.status) == (&other.id, &other.name, &other.status)
    }
}

/// Entries of the suite that are not checks.
const NOTES: [&str; 4] = ["outgoing-request", "incoming-response", "incoming-sse-event", "stream-closed"];

/// The installed suite.
pub(crate) struct Suite(PathBuf);

impl Suite {
    pub(crate) fn new() -> Self {
        Self(install("npm", "conformance"))
    }

    /// Runs all server scenarios of a revision against the server at this URL.
    pub(crate) async fn run(&self, revision: &str, url: &str) -> Findings {
        let output = folder();
        // Its Node.js is beside it.
        let beside = self.0.parent().unwrap().to_owned();
        let path = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
        let path = env::join_paths([beside].into_iter().chain(path)).unwrap();
        let ran = Command::new(&self.0)
            .args(["server", "--url", url, "--requirements", revision, "-o"])
            .arg(&output)
            .env("PATH", path)
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        // It exits with 1 if a check failed, which the caller compares.
        assert!(
            matches!(ran.status.code(), Some(0 | 1)),
            "the suite failed: {}: {}{}",
            ran.status,
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr)
        );
        let findings = findings(&output);
        fs::remove_dir_all(&output).ok();
        findings
    }
}

/// The results in the folder that the suite wrote: one folder for each scenario, named `server-NAME-TIME`.
fn findings(folder: &std::path::Path) -> Findings {
    let scenarios = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let name = name.strip_prefix("server-").unwrap();
        let name = name[..name.len() - "-2026-01-01T00-00-00-000Z".len()].to_owned();
        let checks = fs::read_to_string(entry.path().join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_str(&checks).unwrap();
        let checks = checks.iter().filter(|check| !NOTES.contains(&check["id"].as_str().unwrap()));
        (name, checks.map(check).collect())
    };
    scenarios.map(read).collect()
}

fn check(check: &Value) -> Check {
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    Check { id: text("id"), name: text("name"), status: text("status"), error: text("errorMessage") }
}
