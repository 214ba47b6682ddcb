//! Random values.

use base64::{Engine, engine::general_purpose::STANDARD};

/// 32 random bytes, in Base64.
pub(crate) fn text() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(STANDARD.encode(bytes))
}
