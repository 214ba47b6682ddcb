//! Credentials of registries, from `docker login` and `podman login`.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE},
};
use serde_json::{Value, json};
use tracing::warn;

/// The registry of images without one, and the name that Docker stores its credentials by.
const DOCKER_HUB: (&str, &str) = ("docker.io", "https://index.docker.io/v1/");
/// The user name with which a credential helper marks a token.
const TOKEN: &str = "<token>";

/// The header of a request to pull an image, if its registry has credentials.
pub(super) fn registry_auth(image: &str, env: impl Fn(&str) -> Option<String>) -> Option<String> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let credentials = files(&set).iter().find_map(|file| credentials(file, image))?;
    Some(URL_SAFE.encode(credentials.to_string()))
}

/// The files that `docker login` and `podman login` write.
fn files(set: &impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let below = |name: &str, path: &str| set(name).map(|folder| Path::new(&folder).join(path));
    let files = [
        super::docker_config(set).map(|folder| folder.join("config.json")),
        set("REGISTRY_AUTH_FILE").map(PathBuf::from),
        below("XDG_RUNTIME_DIR", "containers/auth.json"),
        below("HOME", ".config/containers/auth.json"),
    ];
    files.into_iter().flatten().collect()
}

/// The credentials of a file for an image, as the engine expects them.
fn credentials(file: &Path, image: &str) -> Option<Value> {
    let config: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let names = names(image);
    let registry = names.last()?.as_str();
    // The most specific name first: Podman stores credentials for parts of a registry, too.
    let entry = names.iter().find_map(|name| {
        config["auths"].as_object()?.iter().find(|(key, _)| normalized(key) == *name).map(|(_, entry)| entry)
    });
    let helper = config["credHelpers"][registry].as_str().or_else(|| config["credsStore"].as_str());
    let address = if registry == DOCKER_HUB.0 { DOCKER_HUB.1 } else { registry };
    let stored = entry.and_then(|entry| of_entry(entry, address));
    stored.or_else(|| of_helper(helper?, address))
}

/// The names that credentials for an image may have: the image without its tag, and each part of it up to the registry.
fn names(image: &str) -> Vec<String> {
    let image = image.split('@').next().unwrap_or(image);
    let (first, rest) = image.split_once('/').unwrap_or(("", image));
    let is_registry = first.contains(['.', ':']) || first == "localhost";
    let (registry, path) = if is_registry { (first, rest) } else { (DOCKER_HUB.0, image) };
    let path = path.split(':').next().unwrap_or(path);
    let parts: Vec<&str> = path.split('/').collect();
    let longer = (1..=parts.len()).rev().map(|count| format!("{registry}/{}", parts[..count].join("/")));
    longer.chain([registry.to_owned()]).collect()
}

/// A key of `auths`, which may be a URL.
fn normalized(key: &str) -> String {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    let key = ["/v1/", "/v2/", "/v1", "/v2", "/"].iter().find_map(|end| key.strip_suffix(end)).unwrap_or(key);
    if key == "index.docker.io" { DOCKER_HUB.0.into() } else { key.into() }
}

fn of_entry(entry: &Value, address: &str) -> Option<Value> {
    if let Some(token) = entry["identitytoken"].as_str().filter(|token| !token.is_empty()) {
        return Some(json!({"identitytoken": token, "serveraddress": address}));
    }
    let encoded = entry["auth"].as_str().filter(|encoded| !encoded.is_empty())?;
    let decoded = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (name, password) = decoded.split_once(':')?;
    Some(json!({
        "username": name, "password": password.trim_end_matches('\0'), "serveraddress": address,
    }))
}

/// The credentials that a helper, such as the keychain of the system, has for an address. Without any, it fails.
fn of_helper(helper: &str, address: &str) -> Option<Value> {
    let program = format!("docker-credential-{helper}");
    let started = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut process = match started {
        Ok(process) => process,
        Err(error) => {
            warn!(%error, "cannot start {program}, which has the credentials of {address}");
            return None;
        }
    };
    process.stdin.take()?.write_all(address.as_bytes()).ok()?;
    let output = process.wait_with_output().ok().filter(|output| output.status.success())?;
    let found: Value = serde_json::from_slice(&output.stdout).ok()?;
    let (name, secret) = (found["Username"].as_str()?, found["Secret"].as_str()?);
    Some(if name == TOKEN {
        json!({"identitytoken": secret, "serveraddress": address})
    } else {
        json!({"username": name, "password": secret, "serveraddress": address})
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_credentials_of_the_most_specific_name_are_used() {
        let file = std::env::temp_dir().join(format!("skep-auths-{}.json", std::process::id()));
        let entry = |name: &str| json!({"auth": STANDARD.encode(format!("{name}:pass:word"))});
        let config = json!({"auths": {
            "https://index.docker.io/v1/": entry("hub"), "ghcr.io": entry("ghcr"), "ghcr.io/team": entry("team"),
            "https://registry.example:5000/v2/": {"identitytoken": "t"}, "empty.example": {},
        }});
        fs::write(&file, config.to_string()).unwrap();
        for (image, expected) in [
            ("mcp:1", Some("hub")),
            ("me/mcp", Some("hub")),
            ("ghcr.io/other/mcp:1", Some("ghcr")),
            ("ghcr.io/team/mcp@sha256:12", Some("team")),
            ("empty.example/mcp", None),
            ("unknown.example/mcp", None),
        ] {
            let found = credentials(&file, image);
            assert_eq!(found.as_ref().and_then(|found| found["username"].as_str()), expected, "{image}");
            assert!(found.is_none_or(|found| found["password"] == "pass:word"));
        }
        let expected = json!({"identitytoken": "t", "serveraddress": "registry.example:5000"});
        assert_eq!(credentials(&file, "registry.example:5000/a/b:1"), Some(expected));
        fs::remove_file(file).unwrap();
    }
}
