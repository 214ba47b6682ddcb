//! Where servers come from: files of manifests, and the command line.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::ensure;
use kube::core::DynamicObject;

use super::target::Target;
use crate::manifests::{ManifestFiles, ManifestText, Manifests};

/// Files with their last content, and servers of the command line.
pub(super) struct Source {
    files: ManifestFiles,
    targets: Vec<Target>,
    namespace: String,
    /// What was read last.
    seen: Vec<ManifestText>,
    /// What was loaded last.
    loaded: Vec<ManifestText>,
}

impl Source {
    pub(super) fn new(files: &[PathBuf], targets: Vec<Target>, namespace: &str) -> anyhow::Result<Self> {
        ensure!(
            !files.is_empty() || !targets.is_empty(),
            "nothing to run: name a file, as in skep run -f server.yaml, a package, as in skep run npx://PACKAGE, or an image"
        );
        let files = ManifestFiles::new(files);
        Ok(Self { files, targets, namespace: namespace.into(), seen: Vec::new(), loaded: Vec::new() })
    }

    /// The prefix of messages about the files.
    pub(super) fn place(&self) -> String {
        self.files.place()
    }

    /// The texts of the files at the start.
    pub(super) fn first(&mut self) -> anyhow::Result<Vec<ManifestText>> {
        self.loaded = self.files.read()?;
        self.seen.clone_from(&self.loaded);
        Ok(self.loaded.clone())
    }

    /// The texts of the files, if they differ from the last ones. A change counts when it is read twice: an editor may be
    /// writing.
    pub(super) fn news(&mut self) -> anyhow::Result<Option<Vec<ManifestText>>> {
        if self.files.is_empty() {
            return Ok(None);
        }
        let texts = self.files.read()?;
        if texts != self.seen {
            self.seen = texts;
            return Ok(None);
        }
        if texts == self.loaded {
            return Ok(None);
        }
        self.loaded.clone_from(&texts);
        Ok(Some(texts))
    }

    /// All objects, with those of the files from these texts.
    pub(super) fn manifests(&self, texts: &[ManifestText]) -> anyhow::Result<Manifests> {
        let mut manifests = Manifests::of(texts, &self.namespace)?;
        let mut taken: BTreeSet<String> = manifests.objects.iter().filter_map(server_name).collect();
        for target in &self.targets {
            let name = unused(target.name(), &taken);
            manifests.objects.extend(target.objects(&name, &self.namespace)?);
            taken.insert(name);
        }
        Ok(manifests)
    }
}

fn server_name(object: &DynamicObject) -> Option<String> {
    let is_server = object.types.as_ref().is_some_and(|types| types.kind.starts_with("MCP"));
    object.metadata.name.clone().filter(|_| is_server)
}

/// The name, with a number if others have it.
fn unused(name: &str, taken: &BTreeSet<String>) -> String {
    let numbered = (2u32..).map(|number| format!("{name}-{number}"));
    let mut names = [name.to_owned()].into_iter().chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or_default()
}
