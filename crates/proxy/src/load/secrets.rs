//! Secrets: the file names them, and the environment holds them.

use std::{collections::BTreeMap, fs, io};

use skep_config::{RunConfig, env, run_config::RemoteAuth};

/// Why a secret that the file names is not available.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The environment does not hold it.
    #[error(
        "{field}: the environment variable {variable} is missing: it holds the secret that the file names"
    )]
    Missing {
        /// Where it is named.
        field: String,
        /// What should hold it.
        variable: String,
    },
    /// It is in a file that cannot be read.
    #[error("remote_auth_config.bearer_token_file: {path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// It would be the result of a login, for which a pod has no browser.
    #[error(
        "remote_auth_config.{0}: a login by OAuth is not supported: set bearer_token or bearer_token_file"
    )]
    Login(&'static str),
    /// Its target is missing.
    #[error("secrets[{0}]: write it as NAME,target=VARIABLE")]
    Malformed(usize),
}

/// The variables of the server whose values are secrets: `NAME,target=VARIABLE`.
pub(super) fn variables(
    config: &RunConfig,
    env: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, SecretError> {
    let one = |(number, line): (usize, &String)| {
        let parts = line.split_once(',').and_then(|(name, rest)| Some((name, rest.strip_prefix("target=")?)));
        match parts {
            Some((name, variable)) if !name.is_empty() && !variable.is_empty() => {
                Ok((variable.to_owned(), secret(env, format!("secrets[{number}]"), name)?))
            }
            _ => Err(SecretError::Malformed(number)),
        }
    };
    config.secrets.iter().enumerate().map(one).collect()
}

/// The headers for a remote server whose values are secrets. The file names them, and the environment holds them.
pub(super) fn headers(
    config: &RunConfig,
    env: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, SecretError> {
    let mut headers = BTreeMap::new();
    if config.remote_url.is_empty() {
        return Ok(headers);
    }
    let secret = |field, name: &str| secret(env, field, name);
    for (header, name) in config.header_forward.iter().flat_map(|headers| &headers.add_headers_from_secret) {
        headers.insert(header.clone(), secret(format!("header_forward.{header}"), name)?);
    }
    // A token that is exchanged for the caller's takes the same place.
    let exchanged = config.token_exchange_config.is_some();
    if let Some(auth) = config.remote_auth_config.as_ref().filter(|_| !exchanged)
        && let Some(token) = bearer_token(auth, env)?
    {
        headers.insert("Authorization".into(), format!("Bearer {token}"));
    }
    Ok(headers)
}

/// The token that the proxy itself has for a remote server. Settings that promise one, and give none, are an error: otherwise
/// the server would get the token of the caller.
fn bearer_token(auth: &RemoteAuth, env: &BTreeMap<String, String>) -> Result<Option<String>, SecretError> {
    match (auth.bearer_token.as_str(), auth.bearer_token_file.as_str()) {
        ("", "") => auth.login_field().map_or(Ok(None), |field| Err(SecretError::Login(field))),
        ("", path) => {
            let unreadable = |source| SecretError::Unreadable { path: path.to_owned(), source };
            let token = fs::read_to_string(path).map_err(unreadable)?.trim().to_owned();
            if token.is_empty() {
                return Err(unreadable(io::Error::other("it is empty")));
            }
            Ok(Some(token))
        }
        // Without a target it is the token itself, and must not become part of a message.
        (token, _) => match token.strip_suffix(",target=bearer_token") {
            Some(name) => secret(env, "remote_auth_config.bearer_token".into(), name).map(Some),
            None => Ok(Some(token.to_owned())),
        },
    }
}

fn secret(env: &BTreeMap<String, String>, field: String, name: &str) -> Result<String, SecretError> {
    let variable = env::secret(name);
    let value = env.get(&variable).filter(|value| !value.is_empty()).cloned();
    value.ok_or(SecretError::Missing { field, variable })
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
        let missing = headers(&config, &env).unwrap_err().to_string();
        assert!(missing.contains("TOOLHIVE_SECRET_token") && !missing.contains("\"k\""), "{missing}");
        env.insert("TOOLHIVE_SECRET_token".into(), "t".into());
        let expected = [("Authorization", "Bearer t"), ("X-Key", "k")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers(&config, &env).unwrap(), expected.into());
    }

    #[test]
    fn a_token_in_plain_text_is_used_and_in_no_message() {
        let config = RunConfig::parse(
            r#"{"name": "r", "transport": "sse", "remote_url": "https://a.example",
                "header_forward": {"add_headers_from_secret": {"X-Key": "K"}},
                "remote_auth_config": {"bearer_token": "hunter2"}}"#,
        )
        .unwrap();
        let missing = headers(&config, &BTreeMap::new()).unwrap_err().to_string();
        assert!(!missing.contains("hunter2"), "{missing}");
        let env = [("TOOLHIVE_SECRET_K".to_owned(), "k".to_owned())].into();
        assert_eq!(headers(&config, &env).unwrap()["Authorization"], "Bearer hunter2");
    }

    #[test]
    fn a_token_comes_from_a_file_and_a_login_is_an_error() {
        let of = |auth: &str| {
            let fields =
                format!(r#""name": "r", "transport": "sse", "remote_url": "https://a.example", {auth}"#);
            let config = RunConfig::parse(&format!("{{{fields}}}")).unwrap();
            headers(&config, &BTreeMap::new()).map_err(|error| error.to_string())
        };
        let file = std::env::temp_dir().join(format!("skep-token-{}", std::process::id()));
        fs::write(&file, "t-1\n").unwrap();
        for key in ["bearer_token_file", "BearerTokenFile"] {
            let got =
                of(&format!(r#""remote_auth_config": {{"{key}": {file:?}, "client_id": "c"}}"#)).unwrap();
            assert_eq!(got["Authorization"], "Bearer t-1");
        }
        fs::write(&file, "\n").unwrap();
        let error = of(&format!(r#""remote_auth_config": {{"bearer_token_file": {file:?}}}"#)).unwrap_err();
        assert!(error.ends_with("it is empty"), "{error}");
        fs::remove_file(&file).unwrap();
        for field in ["client_id", "issuer", "token_url", "cached_refresh_token_ref"] {
            let error = of(&format!(r#""remote_auth_config": {{"{field}": "x"}}"#)).unwrap_err();
            assert!(error.starts_with(&format!("remote_auth_config.{field}: a login by OAuth")), "{error}");
        }
        assert!(of(r#""remote_auth_config": {"use_pkce": true}"#).unwrap().is_empty());
    }

    #[test]
    fn a_server_gets_its_secrets_under_the_names_that_it_knows() {
        let of = |secrets: &[&str]| {
            let secrets = secrets.iter().map(|line| (*line).to_owned()).collect();
            let config = RunConfig { secrets, ..RunConfig::default() };
            variables(&config, &[("TOOLHIVE_SECRET_key".to_owned(), "hunter2".to_owned())].into())
        };
        assert_eq!(
            of(&["key,target=API_KEY"]).unwrap(),
            [("API_KEY".to_owned(), "hunter2".to_owned())].into()
        );
        for (line, expected) in [
            ("key", "secrets[0]: write it as NAME,target=VARIABLE"),
            ("key,API_KEY", "secrets[0]: write it as NAME,target=VARIABLE"),
            (",target=API_KEY", "secrets[0]: write it as NAME,target=VARIABLE"),
            ("key,target=", "secrets[0]: write it as NAME,target=VARIABLE"),
        ] {
            assert_eq!(of(&[line]).unwrap_err().to_string(), expected);
        }
        let missing = of(&["key,target=A", "other,target=B"]).unwrap_err().to_string();
        assert!(
            missing.starts_with("secrets[1]: the environment variable TOOLHIVE_SECRET_other"),
            "{missing}"
        );
    }
}
