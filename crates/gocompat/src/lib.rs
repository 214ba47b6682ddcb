//! The formats of Go programs that skep has to read and write.
//!
//! ToolHive and Kubernetes are written in Go. Where skep shares a file, a hash or a value with them, it follows the
//! rules of Go's libraries, and these rules are all here. Each module states why it exists and for how long it is
//! needed. Nothing here does I/O, and nothing depends on a Kubernetes client.
//!
//! | module | follows | needed |
//! | --- | --- | --- |
//! | [`duration`] | `time.ParseDuration` and `Duration.String` | permanently: the API has such fields |
//! | [`quantity`] | `resource.Quantity` of Kubernetes | permanently: the API server rewrites them |
//! | [`template`] | `text/template` | permanently: workflows have such fields |
//! | [`fold`] | keys of `encoding/json` in any case | permanently: people write files |
//! | [`structs`] | `encoding/json` with the types of pods | zeros: permanently; encoding: for takeovers |
//! | [`json`] | `encoding/json` | for takeovers |
//! | [`dump`], [`fnv`] | `DeepHashObject` of Kubernetes | for takeovers |
//!
//! "For takeovers" means: until no cluster is left in which pods that ToolHive's operator started are taken over.
//! Pods carry hashes of these texts, so another text would restart them.

pub mod dump;
pub mod duration;
pub mod fnv;
pub mod fold;
pub mod json;
pub mod quantity;
pub mod structs;
pub mod template;

pub use json::Json;
