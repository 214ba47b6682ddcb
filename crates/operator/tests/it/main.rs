//! The operator on a real API server.

// A test panics when an expectation fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admission;
mod calls_reader;
mod checksum_survives_overrides;
mod compat;
mod composite_tools;
mod contended;
mod declared;
mod denied;
mod drift;
mod embedding_server;
mod every_field_has_an_effect;
mod examples;
mod faults;
mod fixture;
mod generated;
mod generated_virtual;
mod generation_is_frozen;
mod immutable;
mod kinds;
mod leader;
mod life;
mod made_by_another;
mod many_referrers;
mod matchers;
mod mcp_registry;
mod migrator;
mod observe;
mod older_crds;
mod one_owner;
mod openshift;
mod others_own_theirs;
mod plan;
mod pod_volumes_roll_the_pods;
mod policies;
mod quiet;
mod quiet_kinds;
mod references;
mod restarts;
mod rollouts;
mod same_name;
mod status_of_another;
mod unwritable;
mod virtual_server;
mod whole_objects;
