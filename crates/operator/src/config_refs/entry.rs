//! MCPServerEntry: what a virtual MCP server needs to reach the server that the entry describes.

use std::collections::BTreeMap;

use serde::Serialize;
use skep_api::{kinds::MCPServerEntrySpec, refs::SecretKeyRef};
use skep_config::{Json, env, paths, sha256};

use super::ca_bundle::CaBundle;
use crate::build::Volumes;

const CA_VOLUME: &str = "ca-bundle-";
/// The longest name that a volume can have.
const LONGEST: usize = 63;
/// How much of an entry's name is part of its volume's, if all of it does not fit.
const SHORTENED: usize = 44;

/// The certificates of the server, if it has a private authority.
pub(crate) fn ca_path(name: &str, spec: &MCPServerEntrySpec) -> Option<String> {
    let bundle = CaBundle::new(spec.ca_bundle_ref.as_ref())?;
    Some(format!("{}/{name}/{}", paths::ENTRY_CERTS_FOLDER, bundle.key))
}

/// Adds the certificates.
pub(crate) fn add_volumes(name: &str, spec: &MCPServerEntrySpec, volumes: &mut Volumes) {
    if let Some(CaBundle { config_map, key }) = CaBundle::new(spec.ca_bundle_ref.as_ref()) {
        let folder = format!("{}/{name}", paths::ENTRY_CERTS_FOLDER);
        volumes.config_map(&volume(name), config_map, Some((key, key)), &folder);
    }
}

/// The name of the volume. Names of entries can be longer than those of volumes, and contain dots.
fn volume(entry: &str) -> String {
    let whole = format!("{CA_VOLUME}{entry}");
    if whole.len() <= LONGEST && !entry.contains('.') {
        return whole;
    }
    let prefix = entry.get(..SHORTENED).unwrap_or(entry).replace('.', "-");
    let hash = sha256(entry);
    format!("{CA_VOLUME}{}-{:.8}", prefix.trim_end_matches('-'), hash)
}

/// The headers to add to requests. Those from Secrets are given by the names of their variables.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Headers<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    add_plaintext_headers: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    add_headers_from_secret: BTreeMap<&'a str, String>,
}

/// The variable with the headers to add, if there are any.
pub(crate) fn headers(name: &str, spec: &MCPServerEntrySpec) -> Option<(String, String)> {
    let headers = spec.header_forward.as_ref()?;
    let secrets = headers.add_headers_from_secret.iter().map(|header| {
        let header = header.header_name.as_str();
        (header, env::header_secret(header, name))
    });
    let headers = Headers {
        add_plaintext_headers: &headers.add_plaintext_headers,
        add_headers_from_secret: secrets.collect(),
    };
    let none = headers.add_plaintext_headers.is_empty() && headers.add_headers_from_secret.is_empty();
    let text = Json::new(&headers).ok().filter(|_| !none)?;
    Some((env::entry_headers(name), text.as_str().into()))
}

/// The variables with the secret values of headers.
pub(crate) fn secrets<'a>(
    name: &str,
    spec: &'a MCPServerEntrySpec,
) -> impl Iterator<Item = (String, &'a SecretKeyRef)> {
    let headers = spec.header_forward.iter().flat_map(|headers| &headers.add_headers_from_secret);
    headers.map(move |header| {
        (env::secret(&env::header_secret(&header.header_name, name)), &header.value_secret_ref)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config_refs::samples::{mounts, sample};

    fn entry() -> MCPServerEntrySpec {
        sample(json!({
            "remoteUrl": "https://ext.example", "transport": "sse", "groupRef": {"name": "g"},
            "caBundleRef": {"configMapRef": {"name": "corp", "key": "root.pem"}},
            "headerForward": {
                "addPlaintextHeaders": {"X-Team": "<a>"},
                "addHeadersFromSecret": [{"headerName": "X-Key", "valueSecretRef": {"name": "s", "key": "k"}}],
            },
        }))
    }

    #[test]
    fn certificates_have_a_separate_folder() {
        assert_eq!(ca_path("ext", &entry()).unwrap(), "/etc/toolhive/ca-bundles/ext/root.pem");
        let mounted = ["ca-bundle-ext /etc/toolhive/ca-bundles/ext"];
        assert_eq!(mounts(|volumes| add_volumes("ext", &entry(), volumes)), mounted);
    }

    #[test]
    fn the_name_of_a_volume_is_valid() {
        let long = format!("{}-{}", "a".repeat(43), "b".repeat(30));
        assert_eq!(volume(&long), format!("ca-bundle-{}-{}", "a".repeat(43), "cd62957f"));
        let dotted = volume("ext.example");
        assert!(dotted.starts_with("ca-bundle-ext-example-") && !dotted.contains('.'), "{dotted}");
    }

    #[test]
    fn one_variable_holds_the_headers_and_names_those_of_secrets() {
        let spec = entry();
        let text = r#"{"addPlaintextHeaders":{"X-Team":"\u003ca\u003e"},"addHeadersFromSecret":{"X-Key":"HEADER_FORWARD_X_KEY_EXT"}}"#;
        assert_eq!(headers("ext", &spec), Some(("TOOLHIVE_HEADER_FORWARD_EXT".into(), text.into())));
        let names: Vec<String> = secrets("ext", &spec).map(|(name, _)| name).collect();
        assert_eq!(names, ["TOOLHIVE_SECRET_HEADER_FORWARD_X_KEY_EXT"]);
        assert_eq!(headers("ext", &MCPServerEntrySpec::default()), None);
    }
}
