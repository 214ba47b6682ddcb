//! Scenarios with recorded responses of ToolHive's programs, played against skep. `SKEP_COMPAT` names their folder.

use std::{
    collections::BTreeSet,
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

/// How many scenarios of the authorization server are played at once.
const PLAYERS: usize = 4;

/// A step whose response differs for two seconds: on a busy machine they are over when the step is taken.
const DEPENDS_ON_TIME: (&str, &str) = ("oidc-issuer-late", "issuer back");

/// Where differences that are right are documented.
const DOCUMENT: &str = include_str!("../../../../docs/compatibility.md");

fn kit(name: &str) -> PathBuf {
    let compat = env::var_os("SKEP_COMPAT").expect("SKEP_COMPAT names the folder of ToolHive's files");
    PathBuf::from(compat).join(name)
}

/// A Python with a package, which is installed once.
fn python_with(package: &str) -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../hack/pypi");
    let output = Command::new(script).arg(package).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "this test needs {package}: {error}");
    String::from_utf8(output.stdout).unwrap().trim().into()
}

/// The differences in a table of the document: the first column has a scenario, the second its steps.
fn documented(heading: &str) -> BTreeSet<(String, String)> {
    let section = DOCUMENT.split(&format!("\n## {heading}\n")).nth(1).expect(heading);
    let section = section.split("\n## ").next().unwrap();
    let rows = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split_once("` | "));
    let steps = rows.flat_map(|(scenario, rest)| {
        let steps = rest.split(" | ").next().unwrap_or_default();
        steps.split(", ").map(|step| (scenario.to_owned(), step.trim_matches('`').to_owned()))
    });
    steps.collect()
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn a_virtual_server_responds_as_toolhives_but_for_documented_differences() {
    let kit = kit("vmcp");
    let scenarios = std::fs::read_dir(kit.join("scenarios")).unwrap();
    let scenarios = scenarios.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let command = format!(
        "{} vmcp serve --config {{config}} --host 127.0.0.1 --port {{port}}",
        env!("CARGO_BIN_EXE_skep")
    );
    let played = Command::new("python3")
        .arg(kit.join("replay"))
        .args(["--jobs", "6", "--command", &command])
        .args(scenarios.collect::<BTreeSet<_>>())
        .output()
        .expect("python3 plays the scenarios");
    let output = String::from_utf8_lossy(&played.stdout);
    let mut scenario = String::new();
    let mut different = BTreeSet::new();
    for line in output.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match line.strip_prefix("  ! ") {
            Some(step) => {
                different.insert((scenario.clone(), step.to_owned()));
            }
            None if matches!(words.first(), Some(&("equal" | "DIFFERS"))) => scenario = words[1].to_owned(),
            None => {}
        }
    }
    assert!(output.contains("scenarios equal"), "{output}{}", String::from_utf8_lossy(&played.stderr));
    assert_documented("The virtual server", &different, &output);
}

/// The same for the authorization server. Redis must be in the path.
#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn an_authorization_server_responds_as_toolhives_but_for_documented_differences() {
    let command = format!(
        "{} vmcp serve --config {{config}} --host 127.0.0.1 --port {{port}}",
        env!("CARGO_BIN_EXE_skep")
    );
    let kit = kit("authserver");
    let scenarios = std::fs::read_dir(kit.join("scenarios")).unwrap();
    let scenarios: BTreeSet<_> = scenarios.map(|entry| entry.unwrap().file_name()).collect();
    let python = python_with("cryptography");
    // Many of them wait on purpose, so several are played at once.
    let players: Vec<_> = (0..PLAYERS)
        .map(|player| {
            Command::new(&python)
                .arg("-B")
                .arg(kit.join("replay"))
                .args(["--command", &command])
                .args(scenarios.iter().skip(player).step_by(PLAYERS))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("python3 plays the scenarios")
        })
        .collect();
    let mut output = String::new();
    for player in players {
        let played = player.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&played.stdout);
        assert!(text.contains("scenarios equal"), "{text}{}", String::from_utf8_lossy(&played.stderr));
        output.push_str(&text);
    }
    let (mut scenario, mut different) = (String::new(), BTreeSet::new());
    for line in output.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.first(), line.strip_prefix("    ")) {
            (Some(&("equal" | "better?" | "DIFF" | "FAIL")), None) => {
                scenario = words[1].to_owned();
                if words[0] == "FAIL" {
                    different.insert((scenario.clone(), "start".to_owned()));
                }
            }
            // A step is numbered, and followed by the path of what differs.
            (Some(number), Some(rest)) if !rest.starts_with(' ') && number.parse::<u8>().is_ok() => {
                let title = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
                let title = title.split(['.', '[']).next().unwrap_or_default();
                different.insert((scenario.clone(), title.to_owned()));
            }
            _ => {}
        }
    }
    assert_documented("The authorization server", &different, &output);
}

fn assert_documented(heading: &str, different: &BTreeSet<(String, String)>, output: &str) {
    let documented = documented(heading);
    let undocumented: Vec<_> = different.difference(&documented).collect();
    let is_certain = |(scenario, step): &&(String, String)| (&**scenario, &**step) != DEPENDS_ON_TIME;
    let obsolete: Vec<_> = documented.difference(different).filter(is_certain).collect();
    assert!(undocumented.is_empty(), "not in docs/compatibility.md: {undocumented:?}\n{output}");
    assert!(obsolete.is_empty(), "in docs/compatibility.md, and equal: {obsolete:?}");
}
