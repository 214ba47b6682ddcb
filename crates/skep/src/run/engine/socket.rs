//! Sockets of container engines.

use std::path::{Path, PathBuf};

/// The existing sockets, or an error with the searched paths.
///
/// `DOCKER_HOST` takes precedence if it is set.
pub(in super::super) fn sockets(env: impl Fn(&str) -> Option<String>) -> Result<Vec<PathBuf>, String> {
    let places = places(&env)?;
    let sockets: Vec<PathBuf> = places.iter().filter(|place| place.exists()).cloned().collect();
    if sockets.is_empty() {
        let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        return Err(format!("looked for its socket at {}", places.join(", ")));
    }
    Ok(sockets)
}

fn places(env: &impl Fn(&str) -> Option<String>) -> Result<Vec<PathBuf>, String> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    if let Some(host) = set("DOCKER_HOST") {
        let Some(path) = host.strip_prefix("unix://") else {
            return Err(format!("DOCKER_HOST is {host}, and only unix:///PATH can be used"));
        };
        return Ok(vec![path.into()]);
    }
    let usual = [
        Some("/var/run/docker.sock".into()),
        set("HOME").map(|home| Path::new(&home).join(".docker/run/docker.sock")),
        set("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("podman/podman.sock")),
        Some("/run/podman/podman.sock".into()),
    ];
    Ok(usual.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Vec<PathBuf>, String> {
        places(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_usual_sockets_of_docker_and_podman_are_searched() {
        let home = [("HOME", "/home/me"), ("XDG_RUNTIME_DIR", "/run/user/7"), ("DOCKER_HOST", "")];
        let expected = [
            "/var/run/docker.sock",
            "/home/me/.docker/run/docker.sock",
            "/run/user/7/podman/podman.sock",
            "/run/podman/podman.sock",
        ];
        assert_eq!(of(&home).unwrap(), expected.map(PathBuf::from));
    }

    #[test]
    fn docker_host_takes_precedence() {
        assert_eq!(of(&[("DOCKER_HOST", "unix:///a/b")]).unwrap(), [PathBuf::from("/a/b")]);
        let wrong = of(&[("DOCKER_HOST", "tcp://10.0.0.1:2375")]).unwrap_err();
        assert_eq!(wrong, "DOCKER_HOST is tcp://10.0.0.1:2375, and only unix:///PATH can be used");
    }

    #[test]
    fn the_error_lists_the_searched_sockets() {
        let none = sockets(|name| (name == "DOCKER_HOST").then(|| "unix:///nowhere/at.all".into()));
        assert_eq!(none.unwrap_err(), "looked for its socket at /nowhere/at.all");
    }
}
