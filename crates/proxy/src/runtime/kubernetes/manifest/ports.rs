//! The ports of a server.

use std::collections::BTreeMap;

use skep_config::{RunConfig, run_config::Transport};

use super::ManifestError;

/// The ports that Kubernetes opens on every node for a NodePort.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// A port of a server, and the port of every node that leads to it, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) number: u16,
    pub(super) node: Option<u16>,
}

/// The ports of a server that is reached over the network, each once, by their numbers.
///
/// A port is opened on the nodes only if `publish` requests it. That the server's own port is in their range is
/// no such request: it would bypass the proxy.
pub(super) fn ports(config: &RunConfig) -> Result<Vec<Port>, ManifestError> {
    let mut ports = BTreeMap::new();
    if config.transport != Transport::Stdio {
        if config.target_port == 0 {
            return Err(ManifestError::new("target_port", "a server that speaks HTTP needs a port"));
        }
        ports.insert(config.target_port, None);
    }
    for (index, text) in config.publish.iter().enumerate() {
        let (number, host) = published(text).ok_or_else(|| {
            let problem = format!("{text:?} is not HOST:CONTAINER, two ports between 1 and 65535");
            ManifestError::new(format!("publish[{index}]"), problem)
        })?;
        let node = ports.entry(number).or_insert(None);
        *node = node.or(host.filter(|port| NODE_PORTS.contains(port)));
    }
    Ok(ports.into_iter().map(|(number, node)| Port { number, node }).collect())
}

/// The port of the container, and that of the host, of `host:container` or of `container` alone.
fn published(text: &str) -> Option<(u16, Option<u16>)> {
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    match text.split_once(':') {
        Some((host, container)) => Some((port(container)?, Some(port(host)?))),
        None => Some((port(text)?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(target_port: u16, publish: &[&str]) -> Result<Vec<Port>, String> {
        let publish = publish.iter().map(ToString::to_string).collect();
        let config = RunConfig { transport: Transport::Sse, target_port, publish, ..RunConfig::default() };
        ports(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn a_port_is_listed_once_and_opened_on_nodes_only_on_request() {
        let port = |number, node| Port { number, node };
        assert_eq!(of(8080, &["9000:8080", "9090"]), Ok(vec![port(8080, None), port(9090, None)]));
        assert_eq!(of(31000, &[]), Ok(vec![port(31000, None)]));
        assert_eq!(of(8080, &["80:8080", "30080:8080"]), Ok(vec![port(8080, Some(30080))]));
    }

    #[test]
    fn an_invalid_port_is_named() {
        for text in ["", ":", "80:", ":80", "0:80", "80:0", "80:65536", "127.0.0.1:80:80", "80/udp", "-1:80"]
        {
            let error = of(8080, &["1:1", text]).unwrap_err();
            assert!(error.starts_with("publish[1]: "), "{error}");
        }
        assert_eq!(of(0, &[]), Err("target_port: a server that speaks HTTP needs a port".into()));
    }
}
