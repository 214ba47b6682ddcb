//! Reading the file of an authorization server.

use serde_json::Value;

use super::AuthServer;
use crate::{FieldError, FieldPath, SchemaVersion, yaml};

impl AuthServer {
    /// Parses the file for a virtual MCP server. Unlike other files, it must not have unknown keys: a misspelled one could
    /// be a protection that is missing.
    pub fn parse(text: &str) -> Result<Self, Vec<FieldError>> {
        let document: Value =
            yaml::parse(text).map_err(|error| vec![FieldError::new("", error.to_string())])?;
        let mut unknown = Vec::new();
        let mut track = serde_path_to_error::Track::new();
        let parsed: Result<Self, _> = serde_ignored::deserialize(
            serde_path_to_error::Deserializer::new(document, &mut track),
            |path| unknown.push(path.to_string().replace(".?", "")),
        );
        let config = parsed.map_err(|error| {
            let field = FieldPath::from(&track.path());
            vec![FieldError::new(field, error.to_string())]
        })?;
        let mut errors: Vec<FieldError> = unknown
            .into_iter()
            .map(|path| FieldError::new(FieldPath::from(path), "is not known: check how it is spelled"))
            .collect();
        if config.schema_version != SchemaVersion::default() {
            let SchemaVersion(version) = SchemaVersion::default();
            errors.push(FieldError::new("schema_version", format!("must be {version}")));
        }
        if errors.is_empty() { Ok(config) } else { Err(errors) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_of_the_file_are_named_with_their_fields() {
        let errors = |text: &str| {
            let errors = AuthServer::parse(text).unwrap_err();
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        let found = errors("issuer: a\nwild: 1\ntoken_lifespans: {wild: 1h}\nschema_version: v9\n");
        for name in ["wild", "token_lifespans.wild", "schema_version"] {
            assert!(found.contains(name), "{found}");
        }
        assert!(errors("issuer: a\nupstreams: [{type: saml}]\n").contains("upstreams[0].type"));
        assert!(AuthServer::parse("issuer: a\n").is_ok());
    }
}
