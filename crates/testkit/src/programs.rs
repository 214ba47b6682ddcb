//! Where the programs of the control plane are.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};

/// The path of a program such as `kube-apiserver`: from `$KUBEBUILDER_ASSETS`, or from the cache that
/// `hack/programs` fills.
pub(crate) fn path_of(program: &str) -> Result<PathBuf> {
    let folder = folder();
    let path = folder.join(program);
    ensure!(
        path.is_file(),
        "{program} is not in {}: run `make programs` once to fetch or build it, or set KUBEBUILDER_ASSETS",
        folder.display()
    );
    Ok(path)
}

fn folder() -> PathBuf {
    if let Some(assets) = env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()) {
        return assets.into();
    }
    let cache = env::var_os("XDG_CACHE_HOME")
        .filter(|value| !value.is_empty())
        .map_or_else(|| Path::new(&env::var_os("HOME").unwrap_or_default()).join(".cache"), PathBuf::from);
    cache.join("skep/programs")
}
