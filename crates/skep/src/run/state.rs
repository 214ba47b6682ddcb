//! The folder with the state of all runs of a user.

use std::{
    env,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// The folder: not below /tmp if possible, where files of a long run would be removed.
pub(super) fn folder() -> PathBuf {
    let folder = within(|name| env::var_os(name).map(PathBuf::from));
    let made = folder.filter(|folder| DirBuilder::new().recursive(true).mode(0o700).create(folder).is_ok());
    made.unwrap_or_else(env::temp_dir)
}

fn within(env: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name: &str| env(name).filter(|path| path.is_absolute());
    let parent =
        absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    parent.map(|parent: PathBuf| parent.join(Path::new("skep/run")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_where_xdg_specifies_it() {
        let of = |variables: &[(&str, &str)]| {
            within(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, path)| path.into()))
        };
        assert_eq!(of(&[("HOME", "/home/me")]), Some("/home/me/.local/state/skep/run".into()));
        assert_eq!(of(&[("HOME", "/home/me"), ("XDG_STATE_HOME", "/s")]), Some("/s/skep/run".into()));
        assert_eq!(of(&[("XDG_STATE_HOME", "relative")]), None);
    }
}
