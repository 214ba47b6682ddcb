//! Tables that prove something by tests: the tests that they name exist.

use std::{collections::BTreeSet, fs, path::Path};

use regex::Regex;

use super::{files, root, shown};

/// What tests are called, and where they are.
struct Tests {
    functions: BTreeSet<String>,
    /// The paths of source files.
    sources: Vec<String>,
    /// The text of all tests in the browser.
    browser: String,
}

impl Tests {
    fn new() -> Self {
        let function = Regex::new(r"\bfn ([a-z0-9_]+)\s*[(<]").unwrap();
        let sources = files(&root(), "rs");
        let text = |file: &Path| fs::read_to_string(file).unwrap();
        let functions = sources.iter().flat_map(|file| {
            let text = text(file);
            let names = function.captures_iter(&text).map(|found| found[1].to_owned());
            names.collect::<Vec<_>>()
        });
        Self {
            functions: functions.collect(),
            browser: files(&root().join("crates"), "mjs").iter().map(|file| text(file)).collect(),
            sources: sources.iter().map(|file| format!("/{}", shown(file))).collect(),
        }
    }

    /// Whether there is what a table names: a test, the beginning of its name before `…`, a file, a folder or a crate.
    fn have(&self, named: &str) -> bool {
        let name = named.trim_end_matches('…').trim_end();
        match name {
            _ if name.contains(' ') => name.starts_with("make ") || self.browser.contains(name),
            _ if name.contains('/') || name.ends_with(".rs") => {
                self.sources.iter().any(|path| path.contains(&format!("/{name}")))
            }
            _ if name.ends_with("::*") => {
                let file = format!("/{}.rs", name.trim_end_matches("::*"));
                self.sources.iter().any(|path| path.ends_with(&file))
            }
            _ if !name.contains('_') => root().join("crates").join(name).is_dir(),
            _ if named.ends_with('…') => self.functions.iter().any(|known| known.starts_with(name)),
            _ => self.functions.contains(name),
        }
    }
}

/// What is named in the last column of tables whose last column is about tests.
fn named(text: &str) -> Vec<String> {
    let (mut named, mut is_about_tests) = (Vec::new(), None);
    for line in text.lines() {
        if !line.starts_with('|') {
            is_about_tests = None;
            continue;
        }
        let last = line.trim().trim_end_matches('|').trim().rsplit(" | ").next().unwrap_or_default();
        if *is_about_tests.get_or_insert_with(|| last.starts_with("test")) {
            named.extend(last.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    named
}

#[test]
fn tests_that_the_documents_name_exist() {
    let (tests, mut missing, mut count) = (Tests::new(), Vec::new(), 0);
    for document in files(&root().join("docs"), "md") {
        let names = named(&fs::read_to_string(&document).unwrap());
        count += names.len();
        let unknown = names.into_iter().filter(|name| !tests.have(name));
        missing.extend(unknown.map(|name| format!("{}: {name}", shown(&document))));
    }
    assert!(missing.is_empty(), "no such tests:\n{}", missing.join("\n"));
    assert!(count > 100, "only {count} names were found");
}
