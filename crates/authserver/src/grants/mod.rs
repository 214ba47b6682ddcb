//! The grants of the token endpoint.

mod code;
mod exchange;
mod issue;
mod jwt_bearer;
mod refresh;
mod replacement;
mod subject_token;
