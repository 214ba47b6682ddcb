//! A service that decides, asked over HTTP. It is only described here.

use serde::Deserialize;

use crate::Error;

/// A policy decision point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Pdp {
    /// Where it is.
    pub http: PdpHttp,
    /// What it is told of a request besides who, what and on which.
    pub context: PdpContext,
    /// How claims are written for it: `mpe` or `standard`.
    pub claim_mapping: String,
}

/// Where a policy decision point is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PdpHttp {
    /// Its URL, to which `/decision` is added.
    pub url: String,
    /// How many seconds it may take. Zero stands for the default, 30.
    pub timeout: u32,
    /// Whether its certificate is taken as it is.
    pub insecure_skip_verify: bool,
}

/// What a policy decision point is told of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PdpContext {
    /// The arguments.
    pub include_args: bool,
    /// The feature and the operation.
    pub include_operation: bool,
}

impl Pdp {
    /// Whether it has what it cannot do without. That the URL is one is for the client to find out.
    pub fn check(&self) -> Result<(), Error> {
        if self.http.url.is_empty() {
            return Err(Error::new("http.url", "say where the policy decision point is"));
        }
        match self.claim_mapping.as_str() {
            "mpe" | "standard" => Ok(()),
            other => Err(Error::new("claim_mapping", format!("{other:?} is neither mpe nor standard"))),
        }
    }
}
