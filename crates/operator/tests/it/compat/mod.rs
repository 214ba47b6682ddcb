//! Children and status as ToolHive's operator makes them, read where they stand: `SKEP_COMPAT` names the folder.

mod corpus;
mod golden;
mod parity;
mod plan;
mod takeover;
