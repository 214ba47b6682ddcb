//! The grants of the token endpoint.

mod code;
mod delivery;
mod exchange;
mod issue;
mod jwt_bearer;
mod refresh;
mod subject_token;

pub(crate) use delivery::InFlight;
