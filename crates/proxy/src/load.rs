//! The RunConfig file: where it is, and what goes over it.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use skep_config::{
    RunConfig, env, paths,
    run_config::{HeaderForwardParameters, Middleware},
};
use tracing::warn;

/// Why there is no RunConfig.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is nowhere.
    #[error("there is no RunConfig file: looked for {0}")]
    Missing(String),
    /// It is there and cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It names a secret that is not there.
    #[error(transparent)]
    Secret(#[from] MissingSecret),
    /// It is not what it should be.
    #[error("{path} is not a RunConfig: {source}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
}

/// A secret that the file names and the environment does not hold.
#[derive(Debug, thiserror::Error)]
#[error("{field}: the environment variable {variable} is missing: it holds the secret that the file names")]
pub struct MissingSecret {
    field: String,
    variable: String,
}

/// What goes over the file: the command line, and the pod's own environment.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The image of the server.
    pub image: String,
    /// A patch for the server's pod template, as JSON.
    pub pod_patch: Option<String>,
    /// Whether to log more.
    pub debug: bool,
    /// The environment of the process.
    pub env: BTreeMap<String, String>,
}

/// The RunConfig of the first file that exists, with what goes over it.
pub fn load(search: &[&Path], overrides: &Overrides) -> Result<RunConfig, LoadError> {
    let Some(path) = search.iter().find(|path| path.exists()) else {
        let places = search.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        return Err(LoadError::Missing(places.join(", ")));
    };
    let path = path.to_path_buf();
    let text =
        fs::read_to_string(&path).map_err(|source| LoadError::Unreadable { path: path.clone(), source })?;
    let mut config = RunConfig::parse(&text).map_err(|source| LoadError::Malformed { path, source })?;
    config.image.clone_from(&overrides.image);
    config.debug = overrides.debug;
    if let Some(patch) = overrides.pod_patch.as_ref().filter(|patch| !patch.is_empty()) {
        config.k8s_pod_template_patch.clone_from(patch);
    }
    let generation = overrides.env.get(env::MCPSERVER_GENERATION).map(String::as_str);
    config.mcpserver_generation = generation_of(generation, config.mcpserver_generation);
    let headers = secret_headers(&config, &overrides.env)?;
    if !headers.is_empty() {
        // Last, so that nobody further out sees them.
        let parameters = HeaderForwardParameters { add_headers: headers };
        config.middleware_configs.push(Middleware::HeaderForward(parameters));
    }
    Ok(config)
}

/// The headers for a remote server whose values are secrets. The file names them, and the environment holds them.
fn secret_headers(
    config: &RunConfig,
    env: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, MissingSecret> {
    let mut headers = BTreeMap::new();
    if config.remote_url.is_empty() {
        return Ok(headers);
    }
    let secret = |field: String, name: &str| {
        let variable = env::secret(name);
        let value = env.get(&variable).filter(|value| !value.is_empty()).cloned();
        value.ok_or(MissingSecret { field, variable })
    };
    for (header, name) in config.header_forward.iter().flat_map(|headers| &headers.add_headers_from_secret) {
        headers.insert(header.clone(), secret(format!("header_forward.{header}"), name)?);
    }
    // A token that is exchanged for the caller's takes the same place.
    let exchanged = config.token_exchange_config.is_some();
    let token = config.remote_auth_config.as_ref().map(|auth| auth.bearer_token.as_str());
    if let Some(token) = token.filter(|token| !token.is_empty() && !exchanged) {
        // In the file it stands as `secret,target=bearer_token`.
        let name = token.split_once(',').map_or(token, |(name, _)| name);
        let value = secret("remote_auth_config.bearer_token".into(), name)?;
        headers.insert("Authorization".into(), format!("Bearer {value}"));
    }
    Ok(headers)
}

/// Where a proxy looks for its RunConfig file.
pub fn search() -> Vec<&'static Path> {
    paths::RUN_CONFIG_SEARCH.iter().map(Path::new).collect()
}

/// The generation that the pod was made for goes over that of the file, which is mounted live and may be of a newer
/// one already.
fn generation_of(env: Option<&str>, file: i64) -> i64 {
    let Some(text) = env.filter(|text| !text.is_empty()) else { return file };
    match text.parse::<i64>() {
        Ok(generation) if generation >= 0 => generation,
        _ => {
            warn!(value = text, "{} is not a generation: the file's stands", env::MCPSERVER_GENERATION);
            file
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_for_a_remote_server_come_from_the_environment() {
        let config = RunConfig::parse(
            r#"{"name": "r", "transport": "sse", "remote_url": "https://a.example",
                "header_forward": {"add_headers_from_secret": {"X-Key": "HEADER_FORWARD_X_KEY_R"}},
                "remote_auth_config": {"bearer_token": "token,target=bearer_token"}}"#,
        )
        .unwrap();
        let mut env = BTreeMap::from([("TOOLHIVE_SECRET_HEADER_FORWARD_X_KEY_R".to_owned(), "k".to_owned())]);
        let missing = secret_headers(&config, &env).unwrap_err().to_string();
        assert!(missing.contains("TOOLHIVE_SECRET_token") && !missing.contains("\"k\""), "{missing}");
        env.insert("TOOLHIVE_SECRET_token".into(), "t".into());
        let expected = [("Authorization", "Bearer t"), ("X-Key", "k")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(secret_headers(&config, &env).unwrap(), expected.into());
    }

    #[test]
    fn the_generation_of_the_pod_goes_over_that_of_the_file() {
        for (env, expected) in [
            (None, 7),
            (Some(""), 7),
            (Some("9"), 9),
            (Some("0"), 0),
            (Some("nine"), 7),
            (Some("-1"), 7),
            (Some("9223372036854775808"), 7),
        ] {
            assert_eq!(generation_of(env, 7), expected, "{env:?}");
        }
    }
}
