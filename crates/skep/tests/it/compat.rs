//! Scenarios with recorded responses of ToolHive's programs, played against skep. `SKEP_COMPAT` names their folder.

use std::{
    collections::BTreeSet,
    env, fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use skep_testkit::{free_port, install};

use crate::{
    authorization_server::{call, server},
    login::{Browser, ann_logs_in, fake_provider, tokens_with},
    proxy::Proxy,
    vmcp_validate::ConfigFiles,
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
    install("pypi", &[package]).unwrap()
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

/// The scenarios of the virtual server, in a folder where one of them waits for longer. The scripted backend learns that a stream was
/// closed when it writes to it for the second time, which is within four seconds; the scenario looks after three.
fn scenarios_with_time(scenarios: &Path) -> PathBuf {
    let folder = env::temp_dir().join(format!("skep-scenarios-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(scenarios).unwrap() {
        let (path, place) = entry.map(|entry| (entry.path(), folder.join(entry.file_name()))).unwrap();
        if !path.ends_with("session-end") {
            std::os::unix::fs::symlink(&path, &place).unwrap();
            continue;
        }
        fs::create_dir(&place).unwrap();
        for file in fs::read_dir(path).unwrap().map(Result::unwrap) {
            let text = fs::read_to_string(file.path()).unwrap();
            fs::write(place.join(file.file_name()), text.replace("\"seconds\": 3", "\"seconds\": 6"))
                .unwrap();
        }
    }
    folder
}

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn a_virtual_server_responds_as_toolhives_but_for_documented_differences() {
    let kit = kit("vmcp");
    let folder = scenarios_with_time(&kit.join("scenarios"));
    let scenarios = fs::read_dir(&folder).unwrap();
    let scenarios = scenarios.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let command = format!(
        "{} vmcp serve --config {{config}} --host 127.0.0.1 --port {{port}}",
        env!("CARGO_BIN_EXE_skep")
    );
    let played = Command::new("python3")
        .arg(kit.join("replay"))
        .args(["--jobs", "6", "--command", &command])
        .arg("--dir")
        .arg(&folder)
        .args(scenarios.collect::<BTreeSet<_>>())
        .output()
        .expect("python3 plays the scenarios");
    fs::remove_dir_all(folder).unwrap();
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

#[test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
fn a_virtual_server_accepts_the_files_that_toolhives_operator_writes() {
    let mut count = 0;
    for folder in ["features", "virtual-mcps"] {
        for entry in fs::read_dir(kit("golden").join(folder)).unwrap() {
            let file = entry.unwrap().path().join("objects.yaml");
            let Ok(objects) = fs::read_to_string(&file) else { continue };
            for files in ConfigFiles::of(&objects) {
                assert_eq!(files.validate().err(), None, "{}", file.display());
                count += 1;
            }
        }
    }
    assert!(count >= 5, "{count}");
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

/// The RunConfig that ToolHive's operator wrote for a server with an authorization server.
fn run_config() -> String {
    let file = kit("golden/features/server_embedded_auth/objects.yaml");
    let text = fs::read_to_string(file).unwrap();
    let large =
        serde_saphyr::options! { non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString };
    let objects: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, large).unwrap();
    let found = objects.iter().find_map(|object| object["data"]["runconfig.json"].as_str());
    found.expect("a RunConfig").to_owned()
}

/// Hosts and folders are those of this machine; everything else is as it was written.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "reads the folder that SKEP_COMPAT names"]
async fn a_proxy_has_the_authorization_server_of_a_run_config_that_toolhives_operator_wrote() {
    let (provider, port) = (fake_provider().await, free_port());
    let (backend, heads) = server(Ipv4Addr::LOCALHOST.into());
    let folder = env::temp_dir().join(format!("skep-golden-{}", std::process::id()));
    for (file, text) in [
        ("keys/key-0.pem", rcgen::KeyPair::generate().unwrap().serialize_pem()),
        ("keys/key-1.pem", rcgen::KeyPair::generate().unwrap().serialize_pem()),
        ("hmac/hmac-0", "h".repeat(40)),
    ] {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let origin = format!("http://127.0.0.1:{port}");
    let text = run_config()
        .replace("/etc/toolhive/authserver", folder.to_str().unwrap())
        .replace("https://as.example.com", &origin)
        .replace("https://mcp.example.com/notes", &format!("{origin}/mcp"))
        .replace("https://github.example.com", &provider.issuer)
        .replace("\"cid\"", "\"us\"");
    let mut config: Value = serde_json::from_str(&text).unwrap();
    for (field, value) in [
        ("host", json!("127.0.0.1")),
        ("port", json!(port)),
        ("target_host", json!("127.0.0.1")),
        ("target_port", json!(backend.port())),
    ] {
        config[field] = value;
    }
    let proxy = Proxy::with("golden", config, &[("TOOLHIVE_UPSTREAM_CLIENT_SECRET_GITHUB_MAIN", "s3cret")]);
    proxy.expect_log("the authorization server is ready");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let issued = tokio::task::block_in_place(|| {
        let log_in = |_: &mut Browser, url: &str| ann_logs_in(&provider, url, &json!({}));
        tokens_with(address, &mut Browser::default(), "openid", log_in)
    });
    assert_eq!(issued["expires_in"], 1800, "{issued}");
    assert_eq!(call(port, issued["access_token"].as_str().unwrap()).status, 200);
    assert!(heads.lock().unwrap()[0].contains("Bearer at-of-ann"));
    assert_eq!(provider.requests("/token")[0].form["client_secret"], "s3cret");
    fs::remove_dir_all(folder).ok();
}
