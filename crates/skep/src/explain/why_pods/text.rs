//! The explanation for people.

use std::fmt::Write;

use super::{Explained, Warning, causes::Cause, changes::Change};

pub(super) fn explanation(explained: &Explained) -> String {
    let mut text = format!("{}\n", explained.server);
    // Writing to a string does not fail.
    let mut line = |indent: usize, content: &str| {
        writeln!(text, "{}{}", "  ".repeat(indent), printable(content)).ok();
    };
    if explained.workloads.is_empty() {
        line(0, "it has no pods, and none are known");
    }
    for workload in &explained.workloads {
        line(0, &format!("{} {}", workload.kind, workload.name));
        if workload.revisions.is_empty() {
            line(1, "no revision is known");
        }
        for revision in &workload.revisions {
            let current = if revision.is_current { ", current" } else { "" };
            line(1, &format!("revision {}{current}, {}", revision.revision, revision.created));
            for Cause { reason, writers } in &revision.causes {
                line(2, reason);
                for writer in writers {
                    let fields = writer.fields.join(", ");
                    line(
                        3,
                        &format!(
                            "{} was written by {} at {}: {fields}",
                            writer.object, writer.manager, writer.time
                        ),
                    );
                }
            }
            for Change { field, before, after } in &revision.changes {
                let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
                line(3, &format!("{field}: {} -> {}", shown(before), shown(after)));
            }
        }
    }
    for restart in &explained.restarts {
        line(0, &restart.sentence());
        if !restart.message.is_empty() {
            line(1, restart.last_line());
        }
    }
    for Warning { time, object, reason, message } in &explained.warnings {
        line(0, &format!("{time} {object}: {reason}: {message}"));
    }
    text
}

/// A text of others without what a terminal would act on.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
