//! Kubernetes objects, built alike for every kind that runs pods. Pure functions from parameters to plain structs.

mod config_map;
mod deployment;
mod env;
mod identity;
mod pod_patch;
mod pod_template;
mod probe;
mod pull_secrets;
mod rbac;
mod security;
mod service;
mod volumes;

pub(crate) use config_map::{checksum_of, config_map};
pub(crate) use deployment::{Main, Probes, ProxyDeployment, requirements};
pub(crate) use env::EnvList;
pub(crate) use identity::{Identity, added};
pub(crate) use pod_patch::pod_patch;
pub(crate) use pod_template::{check_patch, patched, validate_patch, with_defaults};
pub(crate) use probe::{container_port, http_probe};
pub(crate) use pull_secrets::pull_secrets;
pub(crate) use rbac::{Rule, Rules, own_status, policy, rbac, reviews, service_account};
pub(crate) use security::least_rights;
pub(crate) use service::{Labels, port_service, proxy_service, service_url};
pub(crate) use volumes::Volumes;
