//! What every program is started with.

use std::{
    env,
    ffi::OsString,
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

/// Its PATH: these folders before those of the machine.
pub(crate) fn path<'a>(first: impl IntoIterator<Item = &'a Path>) -> Result<OsString> {
    let first = first.into_iter().map(Path::to_path_buf);
    let theirs: Vec<PathBuf> = env::var_os("PATH").iter().flat_map(env::split_paths).collect();
    Ok(env::join_paths(first.chain(theirs))?)
}

/// The file of its log.
pub(crate) fn log(file: &Path) -> Result<File> {
    File::create(file).with_context(|| format!("cannot write {}", file.display()))
}

/// A file of this repository, in whose root make starts this program. Its path is not compiled in: CI uses what it has built in other
/// clones as well.
pub(crate) fn repository(path: &str) -> Result<PathBuf> {
    let file = env::current_dir()?.join(path);
    ensure!(file.exists(), "{} does not exist: run this in the root of the repository", file.display());
    Ok(file)
}
