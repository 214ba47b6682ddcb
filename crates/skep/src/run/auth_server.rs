//! The authorization server of a proxy or virtual server, moved from its pod to this machine.

use std::collections::BTreeMap;

use serde_json::Value;
use skep_config::{AuthServer, paths, run_config::bare_issuer};

use super::folder::Folder;

/// Its addresses in the manifest, and here: it is reached on loopback only.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Addresses {
    issuer: String,
    resource: String,
    origin: String,
}

impl Addresses {
    /// The addresses of a server that listens on this port here.
    pub(super) fn new(config: &AuthServer, port: u16) -> Self {
        Self {
            issuer: config.issuer.clone(),
            resource: config.allowed_audiences.first().cloned().unwrap_or_default(),
            origin: format!("http://127.0.0.1:{port}"),
        }
    }

    /// The address here for one of the manifest. What the manifest has on this port of loopback stays as it is, because
    /// the identity provider may know it.
    pub(super) fn here(&self, text: &str) -> Option<String> {
        if is_here(text, &self.origin) {
            return None;
        }
        match text {
            text if text == self.resource => Some(format!("{}/mcp", self.origin)),
            text if bare_issuer(text) == self.issuer => Some(self.origin.clone()),
            _ => None,
        }
    }

    fn callback(&self, text: &str) -> Option<String> {
        (!is_here(text, &self.origin)).then(|| format!("{}/oauth/callback", self.origin))
    }
}

/// Whether an address is that of this port, by either name of this machine.
fn is_here(text: &str, origin: &str) -> bool {
    let local = origin.replace("127.0.0.1", "localhost");
    [origin, &local]
        .iter()
        .any(|origin| text.strip_prefix(*origin).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// The configuration for this machine: its secrets are in files of the folder, because all servers share one environment, and
/// it stores everything in memory.
pub(super) fn local(
    config: &AuthServer,
    addresses: &Addresses,
    env: &BTreeMap<String, String>,
    folder: &Folder,
) -> Result<AuthServer, String> {
    let mut config = config.clone();
    config.storage = None;
    config.authorization_endpoint_base_url.clear();
    let here = |text: &mut String| {
        if let Some(here) = addresses.here(text) {
            *text = here;
        }
    };
    here(&mut config.issuer);
    config.allowed_audiences.iter_mut().for_each(here);
    let file = |file: &mut String, variable: &mut String| -> Result<(), String> {
        let Some(value) = env.get(variable) else { return Ok(()) };
        let path = format!("/variables/{variable}");
        folder.write(&path, value.as_bytes()).map_err(|error| format!("cannot write a secret: {error}"))?;
        *file = folder.place(&path).to_string_lossy().into_owned();
        variable.clear();
        Ok(())
    };
    for upstream in &mut config.upstreams {
        if let Some(oidc) = &mut upstream.oidc_config {
            oidc.redirect_uri = addresses.callback(&oidc.redirect_uri).unwrap_or(oidc.redirect_uri.clone());
            file(&mut oidc.client_secret_file, &mut oidc.client_secret_env_var)?;
        }
        if let Some(oauth2) = &mut upstream.oauth2_config {
            oauth2.redirect_uri =
                addresses.callback(&oauth2.redirect_uri).unwrap_or(oauth2.redirect_uri.clone());
            file(&mut oauth2.client_secret_file, &mut oauth2.client_secret_env_var)?;
            if let Some(dcr) = &mut oauth2.dcr_config {
                file(&mut dcr.initial_access_token_file, &mut dcr.initial_access_token_env_var)?;
            }
        }
    }
    for client in &mut config.delegate_clients {
        file(&mut client.client_secret_file, &mut client.client_secret_env_var)?;
        client.audiences.iter_mut().for_each(here);
    }
    Ok(config)
}

/// Removes what others in the same container have: variables and files of which some exist in a cluster only.
pub(super) fn keep_own(container: &mut Value) {
    keep(
        container,
        &["TOOLHIVE_UPSTREAM_", "TOOLHIVE_DELEGATE_"],
        &[paths::SIGNING_KEYS_FOLDER, paths::HMAC_FOLDER],
    );
}

/// Removes all variables and files of a container but those whose names and paths start so.
pub(super) fn keep(container: &mut Value, variables: &[&str], folders: &[&str]) {
    let keep = |list: &mut Value, field: &str, prefixes: &[&str]| {
        let starts = |item: &Value| {
            let text = item[field].as_str().unwrap_or_default();
            prefixes.iter().any(|prefix| text.starts_with(prefix))
        };
        list.as_array_mut().into_iter().for_each(|items| items.retain(starts));
    };
    keep(&mut container["env"], "name", variables);
    keep(&mut container["volumeMounts"], "mountPath", folders);
}

/// Replaces texts anywhere within a value.
pub(super) fn replace_texts(value: &mut Value, replacement: &dyn Fn(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(here) = replacement(text) {
                *text = here;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_texts(item, replacement)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace_texts(field, replacement)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(issuer: &str, resource: &str, callback: &str) -> AuthServer {
        serde_json::from_value(json!({
            "issuer": issuer, "allowed_audiences": [resource],
            "upstreams": [{"name": "corp", "type": "oidc", "oidc_config": {
                "issuer_url": "https://corp.example", "client_id": "c", "redirect_uri": callback,
                "client_secret_env_var": "SECRET",
            }}],
            "storage": {"type": "redis", "redis_config": {"addr": "redis:6379"}},
        }))
        .unwrap()
    }

    fn moved(config: &AuthServer) -> (AuthServer, Folder) {
        let folder = Folder::new().unwrap();
        let env = BTreeMap::from([("SECRET".to_owned(), "s3cret".to_owned())]);
        (local(config, &Addresses::new(config, 8080), &env, &folder).unwrap(), folder)
    }

    #[test]
    fn a_server_of_a_cluster_is_on_loopback_here_and_reads_its_secret_from_a_file() {
        let cluster =
            config("https://mcp.example", "https://mcp.example/x", "https://mcp.example/x/oauth/callback");
        let (here, _folder) = moved(&cluster);
        let oidc = here.upstreams[0].oidc_config.as_ref().unwrap();
        assert_eq!(here.issuer, "http://127.0.0.1:8080");
        assert_eq!(here.allowed_audiences, ["http://127.0.0.1:8080/mcp"]);
        assert_eq!(oidc.redirect_uri, "http://127.0.0.1:8080/oauth/callback");
        assert_eq!(std::fs::read_to_string(&oidc.client_secret_file).unwrap(), "s3cret");
        assert_eq!((&*oidc.client_secret_env_var, &*oidc.issuer_url), ("", "https://corp.example"));
        assert_eq!(here.storage, None);
    }

    #[test]
    fn addresses_on_this_port_of_loopback_stay_as_they_are() {
        let local = "http://localhost:8080";
        let addresses = [local.to_owned(), format!("{local}/mcp"), format!("{local}/oauth/callback")];
        let here = moved(&config(&addresses[0], &addresses[1], &addresses[2])).0;
        let callback = here.upstreams[0].oidc_config.as_ref().unwrap().redirect_uri.clone();
        assert_eq!([here.issuer, here.allowed_audiences[0].clone(), callback], addresses);
    }
}
