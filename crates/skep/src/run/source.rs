//! Where servers come from: a file of manifests, or packages on the command line.

use std::{fs, path::PathBuf};

use anyhow::{Context, bail, ensure};
use kube::core::DynamicObject;
use serde_json::json;

use super::plan::COMMAND;
use crate::manifests::Manifests;

/// The kinds of packages, with the command that runs one.
const RUNNERS: [(&str, &[&str]); 2] = [("npx://", &["npx", "-y"]), ("uvx://", &["uvx"])];

/// A file with its last content, and packages.
pub(super) struct Source {
    file: Option<PathBuf>,
    packages: Vec<DynamicObject>,
    namespace: String,
    text: String,
}

impl Source {
    pub(super) fn new(
        file: Option<PathBuf>,
        packages: &[String],
        args: &[String],
        namespace: &str,
    ) -> anyhow::Result<Self> {
        ensure!(
            file.is_some() || !packages.is_empty(),
            "nothing to run: name a file, as in skep run -f server.yaml, or a package, as in skep run npx://PACKAGE"
        );
        ensure!(args.is_empty() || packages.len() == 1, "arguments after -- need one package before them");
        let packages = packages.iter().map(|package| of_package(package, args, namespace));
        let packages = packages.collect::<anyhow::Result<_>>()?;
        Ok(Self { file, packages, namespace: namespace.into(), text: String::new() })
    }

    /// The prefix of messages about the file.
    pub(super) fn place(&self) -> String {
        self.file.as_ref().map(|file| format!("{}: ", file.display())).unwrap_or_default()
    }

    /// The text of the file, if it changed since the last call.
    pub(super) fn news(&mut self) -> anyhow::Result<Option<String>> {
        let Some(file) = &self.file else { return Ok(None) };
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        if text == self.text {
            return Ok(None);
        }
        self.text.clone_from(&text);
        Ok(Some(text))
    }

    /// All objects, with the file's from this text.
    pub(super) fn manifests(&self, text: Option<&str>) -> anyhow::Result<Manifests> {
        let mut manifests = match (&self.file, text) {
            (Some(file), Some(text)) => Manifests::of(text, &file.display().to_string(), &self.namespace)?,
            _ => Manifests::default(),
        };
        manifests.objects.extend(self.packages.iter().cloned());
        Ok(manifests)
    }
}

/// A package as an MCPServer.
fn of_package(package: &str, args: &[String], namespace: &str) -> anyhow::Result<DynamicObject> {
    let known = RUNNERS.iter().find_map(|(scheme, runner)| Some((package.strip_prefix(scheme)?, runner)));
    let Some((package_name, runner)) = known.filter(|(name, _)| !name.is_empty()) else {
        bail!(
            "{package:?} is not a package: write npx://PACKAGE or uvx://PACKAGE, or -f and a file, which may name images"
        );
    };
    let words = runner.iter().copied().chain([package_name]).chain(args.iter().map(String::as_str));
    let command = shlex::try_join(words).with_context(|| format!("{package:?} cannot be a command"))?;
    let object = json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1",
        "kind": "MCPServer",
        "metadata": {
            "name": name(package_name), "namespace": namespace, "generation": 1, "annotations": {COMMAND: command},
        },
        "spec": {"image": package, "transport": "stdio"},
    });
    Ok(serde_json::from_value(object)?)
}

/// The package without its scope and version, as a name that Kubernetes allows.
fn name(package: &str) -> String {
    let last = package.rsplit('/').next().unwrap_or(package);
    let bare = last.split(['@', '=', '[', '<', '>']).next().unwrap_or(last);
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

    #[test]
    fn a_package_is_an_mcp_server_with_its_command() {
        for (package, expected, command) in [
            ("npx://@scope/server-x@1.2", "server-x", "npx -y @scope/server-x@1.2 'a b'"),
            ("uvx://mcp_server.time==3", "mcp-server-time", "uvx 'mcp_server.time==3' 'a b'"),
        ] {
            let object = of_package(package, &["a b".into()], "default").unwrap();
            assert_eq!(object.metadata.name.as_deref(), Some(expected));
            assert_eq!(object.metadata.annotations.unwrap()[COMMAND], command);
        }
    }

    #[test]
    fn the_error_for_an_unknown_package_shows_the_usage() {
        for wrong in ["ghcr.io/a/b:1", "npx://", "server.yaml"] {
            let error = of_package(wrong, &[], "default").unwrap_err().to_string();
            assert!(error.contains("write npx://PACKAGE or uvx://PACKAGE, or -f and a file"), "{error}");
        }
    }
}
