//! The secret that payloads are signed with.

use std::{fs::File, io::Read, path::PathBuf};

use bytes::Bytes;
use skep_config::env;

use crate::limits;

/// Where a secret is.
pub(super) enum Secret {
    /// In a file, as the operator has it. It is read for each signature: it may be rotated.
    File(PathBuf),
    /// In the environment.
    Here(Bytes),
}

impl Secret {
    /// The secret that a reference names: a file by its absolute path, or a variable of the environment.
    pub(super) fn new(reference: &str) -> Result<Option<Self>, String> {
        if reference.is_empty() {
            return Ok(None);
        }
        if reference.starts_with('/') {
            let path = PathBuf::from(reference);
            contents(&path).ok_or_else(|| format!("{reference} cannot be read, or is empty"))?;
            return Ok(Some(Self::File(path)));
        }
        let variable = env::secret(reference);
        let value = std::env::var(&variable).ok().filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| format!("the environment variable {variable} is missing"))?;
        Ok(Some(Self::Here(Bytes::from(value))))
    }

    /// Its bytes, as they are.
    pub(super) async fn read(&self) -> Option<Bytes> {
        match self {
            Self::Here(value) => Some(value.clone()),
            Self::File(path) => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || contents(&path)).await.ok()?
            }
        }
    }
}

fn contents(path: &PathBuf) -> Option<Bytes> {
    let mut contents = Vec::new();
    let file = File::open(path).ok()?;
    file.take(limits::SIGNING_SECRET).read_to_end(&mut contents).ok()?;
    (!contents.is_empty()).then(|| contents.into())
}
