//! The rules of the protocol. Each is a function without effects, with the section that has it.

mod allowed_user;
mod assertion;
mod client_assertion;
mod delegation;
mod document_url;
mod grant_type;
mod parameters;
mod pkce;
mod redirect_hosts;
mod redirect_uri;
mod resource;
mod scope;
mod uri;

pub(crate) use allowed_user::check_user;
pub(crate) use assertion::{AssertionRules, assertion};
pub(crate) use client_assertion::client_assertion;
pub(crate) use delegation::{actor_chain, is_id_token, may_act};
pub(crate) use document_url::is_document_url;
pub(crate) use grant_type::GrantType;
pub(crate) use parameters::Parameters;
pub(crate) use pkce::{challenge_of, is_challenge, is_verified};
pub(crate) use redirect_hosts::is_redirect_allowed;
pub(crate) use redirect_uri::{
    is_confidential_target, is_redirect_to, registration_error, without_loopback_port,
};
pub(crate) use resource::{TargetError, resources, target};
pub(crate) use scope::{is_within, scopes};
pub(crate) use uri::Uri;
