//! The documentation is correct: links resolve, manifests are accepted, metrics exist, variables are read, tests exist.

mod examples;
mod limits;
mod links;
mod manifests;
mod metrics;
mod tests;
mod variables;

use std::{
    fs,
    path::{Path, PathBuf},
};

use skep_testkit::repository;

/// The folder of the project.
fn root() -> PathBuf {
    repository("").canonicalize().unwrap()
}

/// The files below a folder with this extension, except build outputs and hidden files.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let hidden = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with('.') || name == "target"
    };
    let visible = entries.filter(|path| !hidden(path));
    let mut all: Vec<PathBuf> =
        visible.flat_map(|path| if path.is_dir() { files(&path, extension) } else { vec![path] }).collect();
    all.retain(|path| path.extension().is_some_and(|it| it == extension));
    all.sort();
    all
}

/// The path of the file within the project.
fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap().display().to_string()
}
