//! Where manifests are read from: files, folders, and standard input.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};

/// The name of standard input on a command line.
const STDIN: &str = "-";
/// The files of a folder that are read, as by kubectl.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// The text of a file, with the name that errors refer to it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestText {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Files that can be read again when they change.
pub(crate) struct ManifestFiles {
    paths: Vec<PathBuf>,
    /// What can be read only once: standard input and pipes, as of `-f <(command)`.
    read_once: BTreeMap<PathBuf, String>,
}

impl ManifestFiles {
    /// Paths may name folders, whose files are read, but not their folders, and `-` for standard input.
    pub(crate) fn new(paths: &[PathBuf]) -> Self {
        Self { paths: paths.to_vec(), read_once: BTreeMap::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// The names of all, as a prefix of messages.
    pub(crate) fn place(&self) -> String {
        let names: Vec<String> = self.paths.iter().map(|path| name(path)).collect();
        if names.is_empty() { String::new() } else { format!("{}: ", names.join(", ")) }
    }

    pub(crate) fn read(&mut self) -> anyhow::Result<Vec<ManifestText>> {
        let mut texts = Vec::new();
        for path in self.paths.clone() {
            if path.is_dir() {
                for file in files_of(&path)? {
                    let text = fs::read_to_string(&file).with_context(|| unreadable(&file))?;
                    texts.push(ManifestText { name: name(&file), text });
                }
            } else {
                let text = self.text(&path).with_context(|| unreadable(&path))?;
                texts.push(ManifestText { name: name(&path), text });
            }
        }
        Ok(texts)
    }

    fn text(&mut self, path: &Path) -> io::Result<String> {
        if let Some(text) = self.read_once.get(path) {
            return Ok(text.clone());
        }
        if path == Path::new(STDIN) {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text)?;
            self.read_once.insert(path.into(), text.clone());
            return Ok(text);
        }
        let is_file = fs::metadata(path)?.is_file();
        let text = fs::read_to_string(path)?;
        if !is_file {
            self.read_once.insert(path.into(), text.clone());
        }
        Ok(text)
    }
}

fn name(path: &Path) -> String {
    if path == Path::new(STDIN) { "stdin".into() } else { path.display().to_string() }
}

fn unreadable(path: &Path) -> String {
    format!("cannot read {}", name(path))
}

/// The manifests of a folder, sorted.
fn files_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| unreadable(folder))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    let is_manifest = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        path.is_file() && extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
    };
    let mut files: Vec<PathBuf> = paths.into_iter().filter(is_manifest).collect();
    ensure!(!files.is_empty(), "{}: the folder has no .yaml, .yml or .json files", folder.display());
    files.sort();
    Ok(files)
}
