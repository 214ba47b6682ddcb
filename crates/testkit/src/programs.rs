//! Where the programs of the control plane are.

use std::{env, path::PathBuf};

use anyhow::{Context, Result};

/// The path of a program such as `kube-apiserver`: from `$KUBEBUILDER_ASSETS`, or else from the cache that
/// `hack/programs` fills.
pub(crate) fn path_of(program: &str) -> Result<PathBuf> {
    let folders = [folder_in("KUBEBUILDER_ASSETS"), Some(cache().join("skep/programs/current"))];
    folders.into_iter().flatten().map(|folder| folder.join(program)).find(|path| path.is_file()).with_context(
        || format!("{program} is missing: run `make programs` once, or set KUBEBUILDER_ASSETS to a folder that has it"),
    )
}

fn cache() -> PathBuf {
    folder_in("XDG_CACHE_HOME").unwrap_or_else(|| folder_in("HOME").unwrap_or_default().join(".cache"))
}

fn folder_in(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}
