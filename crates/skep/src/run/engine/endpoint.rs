//! Where container engines listen.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// Where an engine listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Endpoint {
    Socket(PathBuf),
    /// A host and port, without TLS.
    Tcp(String),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(formatter),
            Self::Tcp(address) => write!(formatter, "tcp://{address}"),
        }
    }
}

impl Endpoint {
    /// The endpoint of a URL, which `what` sets.
    fn parse(url: &str, what: &str) -> Result<Self, String> {
        match url.split_once("://") {
            Some(("unix", path)) => Ok(Self::Socket(path.into())),
            Some(("tcp" | "http", address)) => {
                let address = address.trim_end_matches('/');
                let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
                Ok(Self::Tcp(if has_port { address.to_owned() } else { format!("{address}:2375") }))
            }
            _ => Err(format!("{what} is {url}, and only unix:///PATH and tcp://HOST:PORT can be used")),
        }
    }

    /// Whether it may exist: a socket that is not there is not tried.
    fn may_exist(&self) -> bool {
        match self {
            Self::Socket(path) => path.exists(),
            Self::Tcp(_) => true,
        }
    }

    /// Whether its containers have the files and the ports of another machine.
    pub(super) fn is_remote(&self) -> bool {
        let Self::Tcp(address) = self else { return false };
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
        let host = host.trim_matches(['[', ']']);
        host != "localhost" && !host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    }
}

/// The endpoints that may exist, or an error with the searched ones.
///
/// `DOCKER_HOST` takes precedence, then `CONTAINER_HOST`, which Podman reads, then the context of Docker.
pub(in super::super) fn endpoints(env: impl Fn(&str) -> Option<String>) -> Result<Vec<Endpoint>, String> {
    let searched = searched(&env)?;
    let found: Vec<Endpoint> = searched.iter().filter(|endpoint| endpoint.may_exist()).cloned().collect();
    if found.is_empty() {
        let places: Vec<String> = searched.iter().map(ToString::to_string).collect();
        return Err(format!("looked for its socket at {}", places.join(", ")));
    }
    Ok(found)
}

fn searched(env: &impl Fn(&str) -> Option<String>) -> Result<Vec<Endpoint>, String> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    for name in ["DOCKER_HOST", "CONTAINER_HOST"] {
        let Some(url) = set(name) else { continue };
        if set("DOCKER_TLS_VERIFY").is_some() && !url.starts_with("unix:") {
            return Err(format!(
                "{name} is {url} with DOCKER_TLS_VERIFY, and TLS is not supported: use a socket"
            ));
        }
        return Ok(vec![Endpoint::parse(&url, name)?]);
    }
    let home = set("HOME").map(PathBuf::from);
    let config = super::docker_config(&set);
    if let Some(context) = set("DOCKER_CONTEXT").filter(|context| context != "default") {
        let missing =
            || format!("DOCKER_CONTEXT is {context}, and there is no such context: docker context ls");
        let folder = config.ok_or_else(missing)?;
        return Ok(vec![context_endpoint(&folder, &context).ok_or_else(missing)??]);
    }
    let current = config.as_deref().and_then(current_context).filter(|_| set("DOCKER_CONTEXT").is_none());
    let own = |path: &str| home.as_ref().map(|home| home.join(path));
    let below = |name: &str, path: &str| set(name).map(|folder| Path::new(&folder).join(path));
    let usual = [
        Some("/var/run/docker.sock".into()),
        own(".docker/run/docker.sock"),
        below("XDG_RUNTIME_DIR", "docker.sock"),
        below("COLIMA_HOME", "default/docker.sock"),
        own(".colima/default/docker.sock"),
        own(".config/colima/default/docker.sock"),
        own(".orbstack/run/docker.sock"),
        own(".rd/docker.sock"),
        below("XDG_RUNTIME_DIR", "podman/podman.sock"),
        Some("/run/podman/podman.sock".into()),
        // podman machine
        own(".local/share/containers/podman/machine/podman.sock"),
        below("TMPDIR", "podman/podman-machine-default-api.sock"),
    ];
    Ok(current.into_iter().chain(usual.into_iter().flatten().map(Endpoint::Socket)).collect())
}

/// The endpoint of the context that `docker context use` has set, if it can be used.
fn current_context(folder: &Path) -> Option<Endpoint> {
    let name = json(&folder.join("config.json"))?["currentContext"].as_str()?.to_owned();
    context_endpoint(folder, &name)?.ok()
}

/// The endpoint of a context. Docker stores each in a folder that is named by a hash.
fn context_endpoint(folder: &Path, context: &str) -> Option<Result<Endpoint, String>> {
    let entries = fs::read_dir(folder.join("contexts/meta")).ok()?.flatten();
    let mut known = entries.filter_map(|entry| json(&entry.path().join("meta.json")));
    let meta = known.find(|meta| meta["Name"] == context)?;
    let host = meta["Endpoints"]["docker"]["Host"].as_str()?;
    Some(Endpoint::parse(host, &format!("the host of the Docker context {context}")))
}

fn json(file: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let searched = searched(&|name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        searched.map(|all| all.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_usual_sockets_of_docker_colima_and_podman_are_searched() {
        let home = [("HOME", "/home/me"), ("XDG_RUNTIME_DIR", "/run/user/7"), ("DOCKER_HOST", "")];
        let expected = [
            "/var/run/docker.sock",
            "/home/me/.docker/run/docker.sock",
            "/run/user/7/docker.sock",
            "/home/me/.colima/default/docker.sock",
            "/home/me/.config/colima/default/docker.sock",
            "/home/me/.orbstack/run/docker.sock",
            "/home/me/.rd/docker.sock",
            "/run/user/7/podman/podman.sock",
            "/run/podman/podman.sock",
            "/home/me/.local/share/containers/podman/machine/podman.sock",
        ];
        assert_eq!(of(&home).unwrap(), expected);
    }

    #[test]
    fn variables_take_precedence() {
        assert_eq!(of(&[("DOCKER_HOST", "unix:///a/b"), ("CONTAINER_HOST", "unix:///c")]).unwrap(), ["/a/b"]);
        assert_eq!(of(&[("CONTAINER_HOST", "unix:///c")]).unwrap(), ["/c"]);
        assert_eq!(of(&[("DOCKER_HOST", "tcp://10.0.0.1")]).unwrap(), ["tcp://10.0.0.1:2375"]);
        let wrong = of(&[("DOCKER_HOST", "ssh://me@host")]).unwrap_err();
        let expected = "DOCKER_HOST is ssh://me@host, and only unix:///PATH and tcp://HOST:PORT can be used";
        assert_eq!(wrong, expected);
        let tls = of(&[("DOCKER_HOST", "tcp://a:2376"), ("DOCKER_TLS_VERIFY", "1")]).unwrap_err();
        assert!(tls.ends_with("TLS is not supported: use a socket"), "{tls}");
    }

    #[test]
    fn the_context_of_docker_is_used() {
        let folder = std::env::temp_dir().join(format!("skep-contexts-{}", std::process::id()));
        let context = |hash: &str, name: &str, host: &str| {
            let meta = folder.join("contexts/meta").join(hash);
            fs::create_dir_all(&meta).unwrap();
            let text = serde_json::json!({"Name": name, "Endpoints": {"docker": {"Host": host}}});
            fs::write(meta.join("meta.json"), text.to_string()).unwrap();
        };
        context("12", "colima", "unix:///colima.sock");
        context("34", "work", "tcp://work.example:2375");
        context("56", "far", "ssh://far.example");
        fs::write(folder.join("config.json"), r#"{"currentContext": "colima"}"#).unwrap();
        let config = ("DOCKER_CONFIG", folder.to_str().unwrap());
        assert_eq!(of(&[config]).unwrap()[..2], ["/colima.sock", "/var/run/docker.sock"]);
        assert_eq!(of(&[config, ("DOCKER_CONTEXT", "work")]).unwrap(), ["tcp://work.example:2375"]);
        assert_eq!(of(&[config, ("DOCKER_CONTEXT", "default")]).unwrap()[0], "/var/run/docker.sock");
        for (name, expected) in
            [("far", "the host of the Docker context far is ssh://far.example"), ("no", "no such context")]
        {
            let error = of(&[config, ("DOCKER_CONTEXT", name)]).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_engine_of_this_machine_is_not_remote() {
        for (url, expected) in [
            ("unix:///a", false),
            ("tcp://127.0.0.1:2375", false),
            ("tcp://[::1]:2375", false),
            ("tcp://localhost", false),
            ("tcp://docker:2375", true),
            ("tcp://10.0.0.1:2375", true),
        ] {
            assert_eq!(Endpoint::parse(url, "x").unwrap().is_remote(), expected, "{url}");
        }
    }

    #[test]
    fn the_error_lists_the_searched_sockets() {
        let none = endpoints(|name| (name == "DOCKER_HOST").then(|| "unix:///nowhere/at.all".into()));
        assert_eq!(none.unwrap_err(), "looked for its socket at /nowhere/at.all");
    }
}
