//! Environment variables: those that the code reads are documented, and those that are documented are read.

use std::{collections::BTreeSet, fs, process::Command};

use regex::Regex;

use super::{files, root};

/// Names in the code that are not settings: variables of Cargo, Kubernetes and shells, of tests, and of other
/// programs.
const OTHERS: &str = "
    CARGO_PKG_VERSION HF_HOME HF_TOKEN KUBERNETES_SERVICE_HOST MODEL_ID NET_BIND_SERVICE SKEP_COMPAT SKEP_VERSION
";
/// Variables that a library reads.
const RUST_LOG: &str = "RUST_LOG";

/// Words in capitals with an underscore, at the places of a text that match the pattern.
fn names(text: &str, pattern: &str) -> BTreeSet<String> {
    let name = Regex::new(&pattern.replace("NAME", "([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)")).unwrap();
    name.captures_iter(text).map(|name| name[1].to_owned()).collect()
}

/// The quoted names in the code, without tests.
fn read_by_code() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for folder in ["config", "egress", "operator", "proxy", "skep", "vmcp"] {
        for file in files(&root().join("crates").join(folder).join("src"), "rs") {
            let text = fs::read_to_string(&file).unwrap();
            let is_test = file.file_name().is_some_and(|name| name == "tests.rs");
            let code = text.split("#[cfg(test)]").next().filter(|_| !is_test).unwrap_or_default();
            all.extend(names(code, r#""NAME""#));
        }
    }
    all
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap()
}

#[test]
fn every_variable_that_the_code_reads_is_documented() {
    let read = read_by_code();
    let others: BTreeSet<String> = OTHERS.split_whitespace().map(Into::into).collect();
    let unused: Vec<_> = others.difference(&read).collect();
    assert!(unused.is_empty(), "OTHERS has names that the code does not: {unused:?}");
    let documented: BTreeSet<String> = ["explain.md", "operations.md", "run.md", "telemetry.md"]
        .iter()
        .flat_map(|name| names(&document(name), r"\bNAME\b"))
        .collect();
    let missing: Vec<_> =
        read.iter().filter(|name| !documented.contains(*name) && !others.contains(*name)).collect();
    assert!(missing.is_empty(), "say in docs/operations.md what these do: {missing:?}");
}

#[test]
fn every_setting_in_the_document_is_read_and_the_operator_lists_its_own() {
    let text = document("operations.md");
    let settings = text.split("\n## Settings\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = names(settings, r"(?m)^\| `NAME` \|");
    let unread: Vec<_> = rows.difference(&read_by_code()).filter(|name| *name != RUST_LOG).cloned().collect();
    assert!(unread.is_empty(), "docs/operations.md has variables that are not read: {unread:?}");

    let operators = names(settings.split("\nA proxy is set up").next().unwrap(), r"(?m)^\| `NAME` \|");
    let help = Command::new(env!("CARGO_BIN_EXE_skep")).args(["operator", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let listed = names(help.split("Environment:").nth(1).unwrap(), "(?m)^  NAME ");
    assert_eq!(listed, operators, "--help and docs/operations.md list other variables");
}
