//! Files of this repository, and what its scripts install.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

/// A file or folder of the repository. Its path is not compiled in: a test may run in another clone than it was built in.
pub fn repository(path: impl AsRef<Path>) -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = package.or_else(|| env::current_dir().ok()).unwrap_or_default();
    let root = here.ancestors().find(|folder| folder.join("Cargo.lock").is_file());
    root.unwrap_or_else(|| panic!("{} is in no clone of the repository", here.display())).join(path)
}

/// Installs something by a script in `hack/`, once, and returns its path.
pub fn install(script: &str, args: &[&str]) -> Result<PathBuf> {
    let script = repository("hack").join(script);
    let output = Command::new(&script).args(args).output();
    let output = output.with_context(|| format!("cannot run {}", script.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} {}: {errors}", script.display(), args.join(" "));
    Ok(String::from_utf8(output.stdout)?.trim().trim_end_matches('/').into())
}
