//! Requests that are signed with credentials of AWS, which a token of the caller is exchanged for.

use std::sync::Arc;

use http::{HeaderMap, Method, Uri};
use skep_api::vmcp::{self, BackendAuthStrategy};
use skep_auth::aws;
use skep_config::{FieldError, run_config};
use skep_gateway::aws::{RoleSigner, SigningError};

use super::{Server, block, subject::Subject, text};
use crate::backend::{BackendError, Caller};

/// Signs for one service.
pub(crate) struct AwsSts {
    subject: Subject,
    signer: Arc<RoleSigner>,
}

/// The signing of one caller's requests.
pub(crate) struct Signing {
    credentials: Arc<aws::Credentials>,
    signer: Arc<RoleSigner>,
}

impl AwsSts {
    pub(super) fn new(strategy: &BackendAuthStrategy, server: Server<'_>) -> Result<Self, FieldError> {
        let config = block("awsSts", &strategy.aws_sts)?;
        let within = |error: FieldError| error.within("awsSts");
        let signer = RoleSigner::new(&run_config(config).map_err(within)?);
        Ok(Self {
            signer: Arc::new(signer.map_err(|error| FieldError::new("awsSts", error))?),
            subject: Subject::or_first(&config.subject_provider_name, server).map_err(within)?,
        })
    }

    /// The signing of this caller's requests. The virtual server itself has no credentials of AWS.
    pub(super) async fn signing(&self, caller: &Caller) -> Result<Option<Signing>, BackendError> {
        let token = self.subject.token(caller).await?;
        let (Some(identity), Some(token)) = (&caller.identity, token) else { return Ok(None) };
        let credentials = self.signer.credentials(identity, &token).await.map_err(no_credentials)?;
        Ok(Some(Signing { credentials, signer: self.signer.clone() }))
    }
}

impl Signing {
    pub(super) fn sign(
        &self,
        requested: (&Method, &Uri),
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), BackendError> {
        self.signer.sign(&self.credentials, requested, headers, body).map_err(no_credentials)
    }
}

fn no_credentials(error: SigningError) -> BackendError {
    BackendError::NoCredentials(error.to_string())
}

/// The same as the proxy has it.
fn run_config(config: &vmcp::AwsSts) -> Result<run_config::AwsSts, FieldError> {
    let number = |field: &'static str, error| FieldError::new(field, format!("is out of range: {error}"));
    let mut role_mappings = Vec::new();
    for mapping in &config.role_mappings {
        let priority = mapping.priority.map(i32::try_from).transpose();
        role_mappings.push(run_config::RoleMapping {
            claim: text(&mapping.claim),
            matcher: text(&mapping.matcher),
            role_arn: mapping.role_arn.clone(),
            priority: priority.map_err(|error| number("roleMappings.priority", error))?,
        });
    }
    let seconds = u32::try_from(config.session_duration.unwrap_or_default());
    Ok(run_config::AwsSts {
        region: config.region.clone(),
        service: text(&config.service),
        fallback_role_arn: text(&config.fallback_role_arn),
        role_mappings,
        role_claim: text(&config.role_claim),
        session_duration: seconds.map_err(|error| number("sessionDuration", error))?,
        session_name_claim: text(&config.session_name_claim),
        // The virtual server looks up tokens of providers itself.
        subject_provider_name: String::new(),
    })
}

#[cfg(test)]
pub(crate) use tests::signed_at;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::credentials::Credentials;

    /// Credentials from the security token service at this address, for the caller's own token.
    pub(crate) fn signed_at(endpoint: &str, config: serde_json::Value) -> Credentials {
        let config: vmcp::AwsSts = serde_json::from_value(config).unwrap();
        let signer = RoleSigner::at(&run_config(&config).unwrap(), endpoint).unwrap();
        Credentials::AwsSts(Box::new(AwsSts { subject: Subject::Caller, signer: Arc::new(signer) }))
    }
}
