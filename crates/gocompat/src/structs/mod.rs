//! JSON that a Go program decodes into the structs of a pod template and encodes again.
//!
//! - [`without_zeros`] is what the API server stores of an object that we send. Needed for as long as the API server is
//!   written in Go: if we sent what it drops, the live object would never equal the desired one.
//! - [`encode`] is the text that a Go program writes. Needed for as long as proxies are taken over that ToolHive's
//!   operator started: they get a pod template as an argument, and another text would restart them.

mod encode;
#[cfg(test)]
mod every_field;
mod pod_template;
mod types;
mod zeros;

pub use encode::{EncodeError, encode};
pub use types::Struct;
pub use zeros::without_zeros;

/// `PodTemplateSpec` of Kubernetes 1.34.
pub static POD_TEMPLATE_SPEC: &Struct = &pod_template::PodTemplateSpec;
