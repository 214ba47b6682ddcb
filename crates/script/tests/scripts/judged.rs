//! The suite of go.starlark.net, read from its module: values and errors as another implementation expects them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::Command,
};

use serde_json::json;
use skep_script::Limits;

use crate::run_with;

/// The files of the suite that are about the language and the builtins that scripts have.
const FILES: [&str; 13] = [
    "assign",
    "bool",
    "builtins",
    "control",
    "dict",
    "float",
    "function",
    "int",
    "list",
    "misc",
    "recursion",
    "set",
    "string",
];

/// Lines of a file.
type Lines = (&'static str, &'static [usize]);

/// Where scripts differ on purpose, with the lines of the files. docs/virtual-servers.md lists the same.
const DELIBERATE: [(&str, &[Lines]); 22] = [
    ("an empty list or tuple cannot be assigned to", &[("assign", &[8, 36, 65, 66])]),
    ("in a comprehension, a name that is not assigned yet is that of the script", &[("assign", &[253])]),
    (
        "scripts have one module, so nothing is frozen, and no objects with fields",
        &[
            ("assign", &[278, 279, 280, 281, 282, 283, 284, 286, 288, 289, 290]),
            (
                "builtins",
                &[
                    185, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 212, 213, 214, 215, 216, 217,
                    218, 219, 220, 223, 224,
                ],
            ),
            ("control", &[59, 60]),
            ("dict", &[76, 77, 97, 98, 110, 112, 122, 123]),
            ("function", &[47, 48, 84, 85, 86, 130, 131]),
            ("list", &[37, 42, 43, 158, 161, 166, 169]),
            ("misc", &[105]),
            ("set", &[217, 218, 219, 226, 239, 240, 241, 247, 258, 259, 265, 269, 270]),
        ],
    ),
    ("assert is a word of Python, and reserved", &[("assign", &[327, 333])]),
    (
        "a flag may have any value, `int()` is 0, `strip` of an empty text strips nothing, and a range is shown with its start, as in Python",
        &[
            ("bool", &[60, 61, 62]),
            ("builtins", &[66, 93, 133, 134]),
            ("int", &[95]),
            ("string", &[309, 310, 311]),
        ],
    ),
    ("what cannot be a key cannot be looked for, as in Python", &[("builtins", &[52])]),
    (
        "sets have fewer methods, and no order",
        &[
            ("builtins", &[199]),
            (
                "set",
                &[
                    62, 64, 75, 81, 82, 88, 89, 95, 102, 103, 109, 110, 116, 117, 123, 124, 148, 161, 162,
                    245, 246, 282, 283, 284, 285, 286, 289, 290, 293, 294, 295, 296, 297, 300, 301,
                ],
            ),
        ],
    ),
    (
        "a method is no key, and is shown without its value",
        &[("builtins", &[202]), ("function", &[30, 114, 115])],
    ),
    ("a mistake in a literal is found when the script starts", &[("dict", &[223, 224, 227, 232, 233, 236])]),
    ("integers have 128 bits", &[("float", &[38, 39, 40, 41, 42, 43, 78, 79, 307, 388, 389, 390])]),
    ("recursion is allowed", &[("function", &[55, 67, 78])]),
    ("only %d rounds, as in Python", &[("int", &[257])]),
    ("a condition of a comprehension is no lambda", &[("list", &[75])]),
    ("what is one value is equal to itself, also if it contains itself", &[("misc", &[63, 78])]),
    ("builtins also take their arguments by name", &[("misc", &[100])]),
    ("there is no load", &[("misc", &[110, 114, 139])]),
    (
        "strings consist of characters, not of bytes: no chr, ord, codepoints and elem_ords",
        &[(
            "string",
            &[
                11, 31, 32, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 50, 51, 52, 53, 54, 59, 60,
                61, 62, 63, 68, 69, 70, 71, 72, 73, 74, 77, 78, 79, 83, 89, 93, 94, 132,
            ],
        )],
    ),
    ("there is no hash", &[("string", &[169, 170])]),
    ("a format must use the values that it is given", &[("string", &[177])]),
    ("a list of prefixes counts like a tuple", &[("string", &[335, 342])]),
    ("startswith and endswith have no range", &[("string", &[345, 346, 347, 348])]),
    ("title case is upper case", &[("string", &[397, 467, 468, 469])]),
];

/// What a test in a file is run with. `assert_fails` calls its function only if it is the one that this run is about: scripts cannot
/// catch an error.
const PRELUDE: &str = r#"
def _failed(line, what): print("FAILED", line, what)
def assert_eq(line, x, y):
    if x != y and not (x != x and y != y): _failed(line, "%r != %r" % (x, y))
def assert_fail(line, what): _failed(line, what)
def assert_ne(line, x, y):
    if x == y: _failed(line, "%r == %r" % (x, y))
def assert_true(line, cond, msg="is not true"):
    if not cond: _failed(line, msg)
def assert_lt(line, x, y):
    if not (x < y): _failed(line, "%r is not less than %r" % (x, y))
def assert_contains(line, x, y):
    if y not in x: _failed(line, "%r does not contain %r" % (x, y))
def assert_fails(line, f, pattern):
    if line == ABOUT: f(); fail("SUCCEEDED")
"#;

/// The folder of the suite.
fn suite() -> PathBuf {
    let found = Command::new("../../hack/starlark").output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    String::from_utf8(found.stdout).unwrap().trim().into()
}

/// A part of a file that is run on its own.
struct Part {
    lines: Vec<String>,
    /// The line of the file that it begins at.
    first: usize,
}

/// What a run of a part did other than expected, by line of the file.
type Findings = BTreeMap<usize, String>;

impl Part {
    /// The lines on which a call must fail.
    fn lines_with(&self, text: &str) -> BTreeSet<usize> {
        let lines = (self.first..).zip(&self.lines);
        lines.filter(|(_, line)| line.contains(text)).map(|(at, _)| at).collect()
    }

    /// As a script that calls the function of one `assert.fails`, or of none.
    fn script(&self, about: Option<usize>) -> String {
        let mut script = PRELUDE.replace("ABOUT", &about.unwrap_or_default().to_string());
        for (at, line) in (self.first..).zip(&self.lines) {
            // Asserts are functions here, which get the number of their line.
            let line = if line.starts_with("load(") { "" } else { line };
            let mut pieces = line.split("assert.");
            script += pieces.next().unwrap_or_default();
            for piece in pieces {
                let (name, arguments) = piece.split_once('(').unwrap();
                script += &format!("assert_{name}({at}, {arguments}");
            }
            script += "\n";
        }
        script
    }

    /// Runs all of it. A line that ends the script, and should not, is left out of the next attempt.
    async fn run(mut self) -> Findings {
        let mut findings = Findings::new();
        let errors = self.lines_with("###");
        for _ in 0..self.lines.len() {
            let outcome = run_with(&self.script(None), &Limits::default(), json!({})).await;
            let failed =
                outcome.logs.lines().filter_map(|line| line.strip_prefix("FAILED ")?.split_once(' '));
            findings.extend(failed.map(|(line, what)| (line.parse().unwrap(), what.to_owned())));
            let Err(error) = outcome.result else {
                findings.extend(errors.iter().map(|line| (*line, "no error".to_owned())));
                break;
            };
            let place = error.place.expect("an error of a script has a place");
            let at = place.line - PRELUDE.lines().count() - 1 + self.first;
            if errors.contains(&at) {
                break;
            }
            findings.insert(at, error.message.clone());
            let line = &mut self.lines[at - self.first];
            let indent = line.len() - line.trim_start().len();
            line.replace_range(indent.., "pass");
        }
        for about in self.lines_with("assert.fails(") {
            let outcome = run_with(&self.script(Some(about)), &Limits::default(), json!({})).await;
            if outcome.result.is_err_and(|error| error.message.contains("SUCCEEDED")) {
                findings.insert(about, "no error".to_owned());
            }
        }
        findings
    }
}

#[tokio::test]
async fn the_suite_of_another_implementation_passes_but_for_deliberate_differences() {
    let folder = suite();
    let mut findings = BTreeMap::new();
    for file in FILES {
        let text = fs::read_to_string(folder.join(format!("{file}.star"))).unwrap();
        let mut first = 1;
        for part in text.split("\n---\n") {
            let lines: Vec<_> = part.split('\n').map(str::to_owned).collect();
            let next = first + lines.len() + 1;
            for (line, what) in (Part { lines, first }).run().await {
                findings.insert((file, line), what);
            }
            first = next;
        }
    }
    for (_, files) in DELIBERATE {
        for (file, lines) in files {
            for line in *lines {
                assert!(
                    findings.remove(&(*file, *line)).is_some(),
                    "{file}.star:{line} passes: remove it here"
                );
            }
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn deliberate_differences_are_documented() {
    let document = fs::read_to_string("../../docs/virtual-servers.md").unwrap();
    for (difference, _) in DELIBERATE {
        assert!(
            document.contains(&format!("- {difference}\n")),
            "{difference} is missing in docs/virtual-servers.md"
        );
    }
}
