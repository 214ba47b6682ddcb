//! The audit log.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// The audit log. If this is set, there is an audit log; `enabled` has no effect.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Audit {
    /// Whether the audit log is enabled. It has no effect.
    pub enabled: bool,
    /// The component in entries.
    pub component: String,
    /// The types of events to write. Empty means all.
    pub event_types: Vec<String>,
    /// The types of events to omit. It overrides `event_types`.
    pub exclude_event_types: Vec<String>,
    /// Whether the bodies of requests are written.
    pub include_request_data: bool,
    /// Whether the bodies of responses are written.
    pub include_response_data: bool,
    /// Whether responses are inspected for errors that the HTTP status does not show: see
    /// [`Audit::detect_application_errors`].
    pub detect_application_errors: Option<bool>,
    /// The largest body that is written, in bytes: see [`Audit::max_data_size`].
    pub max_data_size: u32,
    /// How many actors of a delegation are written: see [`Audit::max_delegation_depth`].
    pub max_delegation_depth: u32,
    /// The file to append to. The default is standard output.
    pub log_file: String,
}

impl Audit {
    const DEFAULT_MAX_DATA_SIZE: u32 = 1024;
    const DEFAULT_MAX_DELEGATION_DEPTH: u32 = 10;

    /// The operator's default for a workload with an audit log.
    pub fn standard() -> Self {
        Self {
            detect_application_errors: Some(true),
            max_data_size: Self::DEFAULT_MAX_DATA_SIZE,
            ..Self::default()
        }
    }

    /// Whether responses are inspected for errors that the HTTP status does not show. The default is true.
    pub fn detect_application_errors(&self) -> bool {
        self.detect_application_errors.unwrap_or(true)
    }

    /// The largest body that is written, in bytes. The default is 1024.
    pub fn max_data_size(&self) -> u32 {
        if self.max_data_size == 0 { Self::DEFAULT_MAX_DATA_SIZE } else { self.max_data_size }
    }

    /// How many actors of a delegation are written. The default is 10.
    pub fn max_delegation_depth(&self) -> u32 {
        if self.max_delegation_depth == 0 {
            Self::DEFAULT_MAX_DELEGATION_DEPTH
        } else {
            self.max_delegation_depth
        }
    }
}
