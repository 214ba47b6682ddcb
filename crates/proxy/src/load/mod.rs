//! The RunConfig file: where it is, and what overrides it.

mod env_files;
mod secrets;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use skep_config::{
    RunConfig, env, paths,
    run_config::{ChainError, HeaderForwardParameters, Middleware},
};
use tracing::warn;

pub use env_files::EnvFileError;
pub use secrets::SecretError;

/// Why there is no RunConfig.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No file exists.
    #[error("no RunConfig file: none of {0} exists")]
    Missing(String),
    /// It exists and cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It names a secret that is missing.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Its middlewares are no valid chain.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// It names a folder of variables that cannot be read.
    #[error(transparent)]
    EnvFiles(#[from] EnvFileError),
    /// It is malformed.
    #[error("{path} is not a RunConfig: {source}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The position and the cause.
        source: serde_json::Error,
    },
}

/// What overrides the file: the command line, and the pod's own environment.
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

/// The RunConfig of the first file that exists, with the overrides.
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
    // Later files take precedence over earlier ones.
    config.env_vars.extend(env_files::variables(&config.env_file_dir)?);
    config.env_vars.extend(secrets::variables(&config, &overrides.env)?);
    let headers = secrets::headers(&config, &overrides.env)?;
    if !headers.is_empty() {
        // Last, so that outer middlewares do not see them.
        let parameters = HeaderForwardParameters { add_headers: headers };
        config.middleware_configs = config.middleware()?;
        config.middleware_configs.push(Middleware::HeaderForward(parameters));
    }
    Ok(config)
}

/// Where a proxy looks for its RunConfig file.
pub fn search() -> Vec<&'static Path> {
    paths::RUN_CONFIG_SEARCH.iter().map(Path::new).collect()
}

/// The generation that the pod was created for overrides that of the file, which is mounted live and may already be
/// newer.
fn generation_of(env: Option<&str>, file: i64) -> i64 {
    let Some(text) = env.filter(|text| !text.is_empty()) else { return file };
    match text.parse::<i64>() {
        Ok(generation) if generation >= 0 => generation,
        _ => {
            warn!(value = text, "{} is not a generation: using that of the file", env::MCPSERVER_GENERATION);
            file
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generation_of_the_pod_overrides_that_of_the_file() {
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
