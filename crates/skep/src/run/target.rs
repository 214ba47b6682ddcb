//! A server of the command line: a package or an image.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, bail, ensure};
use kube::core::DynamicObject;
use regex::Regex;
use serde_json::{Map, Value, json};

use super::plan::COMMAND;

/// The kinds of packages, with the command that runs one.
const RUNNERS: [(&str, &[&str]); 2] = [("npx://", &["npx", "-y"]), ("uvx://", &["uvx"])];
/// The usual form of an image: a name, maybe with a registry, and maybe a tag or digest.
const IMAGE: &str = r"^[a-z0-9][a-z0-9._-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@sha256:[0-9a-f]{64})?$";

/// The form of a name.
const NAME: &str = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$";

/// Settings of the command line for its server.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) name: Option<String>,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) secrets: BTreeMap<String, String>,
    /// Folders of this machine, as `here:there[:ro]`.
    pub(super) volumes: Vec<String>,
    pub(super) port: Option<u16>,
    pub(super) transport: Option<String>,
    pub(super) target_port: Option<u16>,
}

/// A server of the command line.
pub(super) struct Target {
    name: String,
    /// The word of the command line.
    image: String,
    /// The command line of a package.
    command: Option<String>,
    settings: Settings,
}

impl Target {
    /// The servers that the words of a command line name.
    pub(super) fn parse_all(words: &[String], settings: &Settings) -> anyhow::Result<Vec<Self>> {
        ensure!(
            words.len() == 1 || *settings == Settings::default(),
            "arguments after -- and settings such as --env or --port are for one package or image, and there are {}",
            words.len()
        );
        words.iter().map(|word| Self::parse(word, settings)).collect()
    }

    fn parse(word: &str, settings: &Settings) -> anyhow::Result<Self> {
        let known = RUNNERS.iter().find_map(|(scheme, runner)| Some((word.strip_prefix(scheme)?, runner)));
        let command = match known {
            Some((package, runner)) => {
                ensure!(!package.is_empty(), "{word:?} names no package: write {word}PACKAGE");
                ensure!(
                    settings.volumes.is_empty(),
                    "--volume is for images: a package runs with your own files"
                );
                let args = settings.args.iter().map(String::as_str);
                let words = runner.iter().copied().chain([package]).chain(args);
                let command =
                    shlex::try_join(words).with_context(|| format!("{word:?} cannot be a command"))?;
                Some(command)
            }
            None => {
                check_image(word)?;
                None
            }
        };
        let name = settings.name.clone().unwrap_or_else(|| target_name(word));
        ensure!(
            Regex::new(NAME)?.is_match(&name),
            "--name {name}: use lower-case letters, digits and hyphens"
        );
        Ok(Self { name, image: word.into(), command, settings: settings.clone() })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// It as an MCPServer of this name, with a Secret if it has secrets.
    pub(super) fn objects(&self, name: &str, namespace: &str) -> anyhow::Result<Vec<DynamicObject>> {
        let secret = format!("{name}-command-line");
        let mut objects = vec![json!({
            "apiVersion": "toolhive.stacklok.dev/v1beta1",
            "kind": "MCPServer",
            "metadata": {"name": name, "namespace": namespace, "generation": 1},
            "spec": self.spec(&secret)?,
        })];
        if let Some(command) = &self.command {
            objects[0]["metadata"]["annotations"] = json!({COMMAND: command});
        }
        if !self.settings.secrets.is_empty() {
            let data: Map<String, Value> = self.settings.secrets.iter().map(encoded).collect();
            let metadata = json!({"name": secret, "namespace": namespace});
            objects.push(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}));
        }
        objects.into_iter().map(|object| Ok(serde_json::from_value(object)?)).collect()
    }

    fn spec(&self, secret: &str) -> anyhow::Result<Value> {
        let Settings { args, env, secrets, volumes, port, transport, target_port, .. } = &self.settings;
        let mut spec = json!({"image": self.image, "transport": transport.as_deref().unwrap_or("stdio")});
        if self.command.is_none() && !args.is_empty() {
            spec["args"] = json!(args);
        }
        let list = |values: Vec<Value>| Some(Value::Array(values)).filter(|list| list != &json!([]));
        let env = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        let secrets =
            secrets.keys().map(|name| json!({"name": secret, "key": name, "targetEnvName": name})).collect();
        let volumes = volumes.iter().enumerate().map(|(number, volume)| mount(number, volume));
        for (field, value) in [
            ("env", list(env)),
            ("secrets", list(secrets)),
            ("volumes", list(volumes.collect::<anyhow::Result<_>>()?)),
            ("proxyPort", port.map(Value::from)),
            ("mcpPort", target_port.map(Value::from)),
        ] {
            if let Some(value) = value {
                spec[field] = value;
            }
        }
        Ok(spec)
    }
}

fn encoded((name, value): (&String, &String)) -> (String, Value) {
    use base64::{Engine, engine::general_purpose::STANDARD};
    (name.clone(), STANDARD.encode(value).into())
}

/// A volume of the command line, as of an MCPServer. A relative path starts at the working directory.
fn mount(number: usize, volume: &str) -> anyhow::Result<Value> {
    let (volume, mode) = match volume.rsplit_once(':') {
        Some((rest, mode @ ("ro" | "rw"))) => (rest, mode),
        _ => (volume, "rw"),
    };
    let (here, there) =
        volume.split_once(':').filter(|(_, there)| there.starts_with('/')).with_context(|| {
            format!("--volume {volume}: write HERE:THERE or HERE:THERE:ro, with an absolute THERE")
        })?;
    let here = std::path::absolute(here).with_context(|| format!("--volume {volume}"))?;
    Ok(json!({
        "name": format!("volume-{number}"), "hostPath": here, "mountPath": there, "readOnly": mode == "ro",
    }))
}

fn check_image(word: &str) -> anyhow::Result<()> {
    let is_manifest = [".yaml", ".yml", ".json"].iter().any(|end| word.ends_with(end));
    if is_manifest || Path::new(word).exists() {
        bail!("{word:?} is a file: write skep run -f {word}");
    }
    if !Regex::new(IMAGE)?.is_match(word) {
        bail!(
            "{word:?} is neither a package nor an image: write npx://PACKAGE, uvx://PACKAGE or REGISTRY/IMAGE:TAG"
        );
    }
    Ok(())
}

/// The name of the server that a word of the command line names.
pub(super) fn target_name(word: &str) -> String {
    let package = RUNNERS.iter().find_map(|(scheme, _)| word.strip_prefix(scheme));
    object_name(package.unwrap_or(word))
}

/// A package or image without its scope and version, as a name that Kubernetes allows.
pub(super) fn object_name(package: &str) -> String {
    let last = package.rsplit('/').next().unwrap_or(package);
    let bare = last.split(['@', '=', '[', '<', '>', ':']).next().unwrap_or(last);
    let fits = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = bare.chars().map(fits).take(50).collect();
    match name.trim_matches('-') {
        "" => "server".into(),
        name => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(word: &str, settings: &Settings) -> Vec<Value> {
        let target = Target::parse(word, settings).unwrap();
        let objects = target.objects(target.name(), "default").unwrap();
        objects.into_iter().map(|object| serde_json::to_value(object).unwrap()).collect()
    }

    #[test]
    fn a_package_is_an_mcp_server_with_its_command() {
        let settings = Settings { args: vec!["a b".into()], ..Settings::default() };
        for (package, expected, command) in [
            ("npx://@scope/server-x@1.2", "server-x", "npx -y @scope/server-x@1.2 'a b'"),
            ("uvx://mcp_server.time==3", "mcp-server-time", "uvx 'mcp_server.time==3' 'a b'"),
        ] {
            let object = &server(package, &settings)[0];
            assert_eq!(object["metadata"]["name"], expected);
            assert_eq!(object["metadata"]["annotations"][COMMAND], command);
            assert_eq!(object["spec"], json!({"image": package, "transport": "stdio"}));
        }
    }

    #[test]
    fn an_image_is_an_mcp_server_with_the_settings_of_the_command_line() {
        let pair = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
        let settings = Settings {
            name: None,
            args: vec!["--all".into()],
            env: pair("A", "b"),
            secrets: pair("TOKEN", "hunter2"),
            volumes: vec!["/srv:/data:ro".into()],
            port: Some(9000),
            transport: Some("sse".into()),
            target_port: Some(80),
        };
        let objects = server("ghcr.io:443/a/Fetch:1.2".to_lowercase().as_str(), &settings);
        assert_eq!(objects[0]["metadata"]["name"], "fetch");
        let expected = json!({
            "image": "ghcr.io:443/a/fetch:1.2", "transport": "sse", "args": ["--all"], "proxyPort": 9000, "mcpPort": 80,
            "env": [{"name": "A", "value": "b"}],
            "secrets": [{"name": "fetch-command-line", "key": "TOKEN", "targetEnvName": "TOKEN"}],
            "volumes": [{"name": "volume-0", "hostPath": "/srv", "mountPath": "/data", "readOnly": true}],
        });
        assert_eq!(objects[0]["spec"], expected);
        assert_eq!(objects[1]["data"], json!({"TOKEN": "aHVudGVyMg=="}));
    }

    #[test]
    fn the_error_for_an_unknown_word_shows_the_usage() {
        for (wrong, expected) in [
            ("npx://", "write npx://PACKAGE"),
            ("server.yaml", "write skep run -f server.yaml"),
            ("Not An Image", "is neither a package nor an image"),
            ("docker://a", "is neither a package nor an image"),
        ] {
            let error = Target::parse(wrong, &Settings::default()).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn settings_that_a_server_cannot_have_are_rejected() {
        let named = Settings { name: Some("My Server".into()), ..Settings::default() };
        let with_volume = Settings { volumes: vec!["/a:/b".into()], ..Settings::default() };
        for (word, settings, expected) in [
            ("npx://x", &named, "--name My Server: use lower-case letters"),
            ("npx://x", &with_volume, "--volume is for images"),
        ] {
            let error = Target::parse(word, settings).err().unwrap().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let relative = Settings { volumes: vec!["/a:b".into()], ..Settings::default() };
        assert!(Target::parse("x", &relative).unwrap().objects("x", "default").is_err());
    }

    #[test]
    fn settings_are_for_one_server() {
        let settings = Settings { port: Some(1), ..Settings::default() };
        let words = ["a".to_owned(), "b".to_owned()];
        assert!(Target::parse_all(&words, &settings).is_err());
        assert!(Target::parse_all(&[], &settings).is_err());
        assert_eq!(Target::parse_all(&words, &Settings::default()).unwrap().len(), 2);
    }
}
