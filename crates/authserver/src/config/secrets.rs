//! Keys and secrets in files and variables.

use std::{fs, path::Path};

use skep_config::{AuthServer, FieldError, FieldPath, auth_server::AuthServerStorageType};
use tracing::warn;

use crate::{
    keys::{Keys, OpaqueTokens, SigningKey},
    random,
};

type Errors = Vec<FieldError>;

/// The keys that sign tokens. Without any, one is generated for the life of the process.
pub(super) fn keys(config: &AuthServer, errors: &mut Errors) -> Option<Keys> {
    let files = config.signing_key_config.clone().unwrap_or_default();
    let folder = Path::new(&files.key_dir);
    let mut key = |field: FieldPath, file: &str| {
        let path = folder.join(file);
        let parsed = match fs::read(&path) {
            Ok(pem) => SigningKey::parse(&pem).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        parsed
            .map_err(|error| {
                let message = format!("the key {} cannot be used: {error}", path.display());
                errors.push(FieldError::new(field, message));
            })
            .ok()
    };
    let current = match &*files.signing_key_file {
        "" => {
            warn_if_shared(config, "signing_key_config");
            SigningKey::generate()
        }
        file => key("signing_key_config.signing_key_file".into(), file),
    };
    let former = files.fallback_key_files.iter().enumerate();
    let former: Vec<_> = former
        .filter_map(|(index, file)| {
            key(FieldPath::from("signing_key_config.fallback_key_files").index(index), file)
        })
        .collect();
    Some(Keys::new(current?, former))
}

/// What a store outlives or shares must be verified by other processes, too.
fn warn_if_shared(config: &AuthServer, field: &str) {
    let is_shared =
        config.storage.as_ref().and_then(|storage| storage.type_) == Some(AuthServerStorageType::Redis);
    if is_shared {
        warn!(
            "{field} is missing: what this process issues ends with it, and is refused by replicas, whatever is in Redis"
        );
    }
}

/// The secrets of codes and refresh tokens. A file is used byte by byte, also a line break at its end.
pub(super) fn opaque(config: &AuthServer, errors: &mut Errors) -> Option<OpaqueTokens> {
    if config.hmac_secret_files.is_empty() {
        warn_if_shared(config, "hmac_secret_files");
        return Some(OpaqueTokens::new(vec![random::bytes().ok()?]));
    }
    let mut secrets = Vec::new();
    for (index, file) in config.hmac_secret_files.iter().enumerate() {
        let field = FieldPath::from("hmac_secret_files").index(index);
        match fs::read(file) {
            Ok(bytes) => match bytes.first_chunk::<32>() {
                Some(secret) => secrets.push(*secret),
                None => errors.push(FieldError::new(field, format!("{file} must have at least 32 bytes"))),
            },
            Err(error) => errors.push(FieldError::new(field, format!("{file} cannot be read: {error}"))),
        }
    }
    Some(OpaqueTokens::new(secrets))
}

/// A secret in a file or a variable. The file is preferred; `None`: neither is named.
pub(super) fn secret(
    (file_field, file): (&'static str, &str),
    (variable_field, variable): (&'static str, &str),
) -> Result<Option<String>, FieldError> {
    if !file.is_empty() {
        return match fs::read_to_string(file) {
            Ok(text) if !text.trim().is_empty() => Ok(Some(text.trim().to_owned())),
            Ok(_) => Err(FieldError::new(file_field, format!("the secret in {file} is empty"))),
            Err(error) => {
                Err(FieldError::new(file_field, format!("the secret in {file} cannot be read: {error}")))
            }
        };
    }
    if variable.is_empty() {
        return Ok(None);
    }
    match std::env::var(variable) {
        Ok(text) if !text.is_empty() => Ok(Some(text)),
        _ => Err(FieldError::new(variable_field, format!("the environment variable {variable} is not set"))),
    }
}
