//! The folder with the state of all runs of a user.

use std::{env, fs::DirBuilder, os::unix::fs::DirBuilderExt, path::PathBuf};

use rustix::process::getuid;

/// The folder for the files of servers.
pub(super) fn files() -> PathBuf {
    folder("run").unwrap_or_else(env::temp_dir)
}

/// The folder with a folder for each run.
pub(super) fn runs() -> PathBuf {
    let own = || env::temp_dir().join(format!("skep-runs-{}", getuid().as_raw()));
    folder("runs").unwrap_or_else(own)
}

/// The file with what was added to the configuration of clients.
pub(crate) fn clients_file() -> PathBuf {
    runs().with_file_name("clients.json")
}

/// A folder that only the user can read: not below /tmp if possible, where files of a long run would be removed.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = within(|name| env::var_os(name).map(PathBuf::from))?.join(name);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder)
}

fn within(env: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name: &str| env(name).filter(|path| path.is_absolute());
    let parent =
        absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    Some(parent?.join("skep"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_where_xdg_specifies_it() {
        let of = |variables: &[(&str, &str)]| {
            within(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, path)| path.into()))
        };
        assert_eq!(of(&[("HOME", "/home/me")]), Some("/home/me/.local/state/skep".into()));
        assert_eq!(of(&[("HOME", "/home/me"), ("XDG_STATE_HOME", "/s")]), Some("/s/skep".into()));
        assert_eq!(of(&[("XDG_STATE_HOME", "relative")]), None);
    }
}
