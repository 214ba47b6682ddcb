//! Children and status as ToolHive's operator writes them: `SKEP_COMPAT` names the folder.

mod corpus;
mod golden;
mod parity;
mod plan;
mod takeover;
