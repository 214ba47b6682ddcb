//! Children and status as ToolHive's operator writes them: `SKEP_COMPAT` names the folder.

mod corpus;
pub(crate) mod golden;
mod parity;
mod plan;
mod takeover;
