//! Every reason that the API declares is reported by the operator: an unused one would be documented in vain.

use std::{fs, path::Path};

use skep_api::{conditions::CONDITIONS, events::EVENTS};
use skep_testkit::repository;

/// The operator's code, without comments and tests.
fn code(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = entries.map(|path| {
        if path.is_dir() {
            return code(&path);
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn is_used(code: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(start, _)| {
        let (before, after) = (&code[..start], &code[start + word.len()..]);
        !before.ends_with(is_word) && !after.starts_with(is_word)
    })
}

#[test]
fn every_declared_reason_is_reported_somewhere() {
    // Proxies and virtual servers report one condition each themselves.
    let folders = ["operator/src", "proxy/src/runtime/kubernetes/report", "vmcp/src/report"];
    let folders = folders.map(|folder| code(&repository("crates").join(folder)));
    let code = folders.join("\n");
    for entry in CONDITIONS.iter().flat_map(|declared| declared.reasons) {
        let (type_, reason) = (entry.reason.type_, entry.reason.reason);
        let of_type = is_used(&code, type_.trim_end_matches('-')) && is_used(&code, reason);
        assert!(of_type, "{type_} {reason} is declared in skep_api::conditions and never reported");
    }
    for event in EVENTS {
        assert!(
            is_used(&code, event.reason),
            "{} is declared in skep_api::events and never published",
            event.reason
        );
    }
}
