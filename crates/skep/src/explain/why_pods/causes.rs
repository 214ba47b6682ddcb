//! Why a revision came: what changed first, and who wrote it.

use serde::Serialize;
use serde_json::Value;
use skep_config::annotations;

use super::{
    changes::Change,
    facts::{Facts, Template, WorkloadFacts},
};

/// How long after a write its revision may come, in seconds. Times in the cluster are whole seconds.
const DELAY: i64 = 60;
/// How many fields of a writer are named.
const FIELDS: usize = 10;
/// The field managers of the operator and of the proxy.
const OWN: [&str; 2] = ["skep-", "toolhive-container-manager"];

/// A reason, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Cause {
    pub(super) reason: String,
    /// Who wrote it, when, and which fields, as far as that is still known.
    pub(super) writers: Vec<Writer>,
}

/// A writer of fields. The API server keeps the last time of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Writer {
    pub(super) manager: String,
    pub(super) time: String,
    /// What was written.
    pub(super) object: String,
    pub(super) fields: Vec<String>,
}

pub(super) fn causes(
    before: Option<&Template>,
    template: &Template,
    changes: Option<&[Change]>,
    workload: &WorkloadFacts,
    facts: &Facts,
) -> Vec<Cause> {
    let (Some(before), Some(changes)) = (before, changes) else {
        let reason = match template.revision {
            1 => format!("the {} was created", workload.kind),
            _ => "the revision before is no longer known".to_owned(),
        };
        return vec![Cause { reason, writers: Vec::new() }];
    };
    let window = Window::between(before, template);
    let annotation = |template: &Template, name: &str| {
        template.template["metadata"]["annotations"][name].as_str().map(str::to_owned)
    };
    let changed = |name: &str| {
        let (old, new) = (annotation(before, name), annotation(template, name));
        (old != new).then_some((old.unwrap_or_default(), new.unwrap_or_default()))
    };
    let mut found = Vec::new();
    let mut add = |reason: String, writers: Vec<Writer>| found.push(Cause { reason, writers });
    let generation = changed(annotations::MCPSERVER_GENERATION);
    let of_spec = writers(&facts.object, &facts.kind, "f:spec", &window);
    if let Some((old, new)) = &generation {
        add(format!("the spec of the {} changed: generation {old} to {new}", facts.kind), of_spec.clone());
    }
    if changed(annotations::RUNCONFIG_CHECKSUM).is_some() {
        let of_references: Vec<Writer> = facts
            .references
            .iter()
            .flat_map(|object| {
                writers(object, object["kind"].as_str().unwrap_or_default(), "f:spec", &window)
            })
            .collect();
        let of_spec = if generation.is_none() { of_spec } else { Vec::new() };
        if generation.is_none() || !of_references.is_empty() {
            let writers = of_spec.into_iter().chain(of_references).collect();
            add("the configuration of the proxy changed".to_owned(), writers);
        }
    }
    if let Some((_, time)) = changed(annotations::KUBECTL_RESTARTED_AT) {
        add(format!("kubectl rollout restart at {time}"), Vec::new());
    }
    if let Some((_, time)) = changed(annotations::RESTARTED_AT) {
        let of_request = writers(&facts.object, &facts.kind, "f:metadata", &window);
        add(
            format!("a restart was requested by the annotation {} = {time}", annotations::RESTARTED_AT),
            of_request,
        );
    }
    for change in changes.iter().filter(|change| change.field.ends_with("].image")) {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        add(format!("the image changed: {} to {}", text(&change.before), text(&change.after)), Vec::new());
    }
    let others = writers(&workload.object, workload.kind, "f:spec", &window);
    let others: Vec<Writer> =
        others.into_iter().filter(|writer| !OWN.iter().any(|own| writer.manager.starts_with(own))).collect();
    if !others.is_empty() {
        add(format!("another program wrote the {}", workload.kind), others);
    }
    if found.is_empty() {
        found.push(Cause {
            reason: "the operator made another template: a setting of it, its version, or an object that it read changed"
                .to_owned(),
            writers: Vec::new(),
        });
    }
    found
}

/// When the change of a revision was written: after the one before, and before its own pods.
struct Window {
    from: i64,
    to: i64,
}

impl Window {
    fn between(before: &Template, template: &Template) -> Self {
        let to = seconds(&template.created).unwrap_or(i64::MAX);
        Self { from: seconds(&before.created).unwrap_or_default().max(to.saturating_sub(DELAY)), to }
    }
}

fn seconds(time: &str) -> Option<i64> {
    time.parse().ok().map(jiff::Timestamp::as_second)
}

/// Who wrote a part of this object at that time.
fn writers(object: &Value, kind: &str, part: &str, window: &Window) -> Vec<Writer> {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let in_time = |entry: &&Value| {
        let time = entry["time"].as_str().and_then(seconds);
        entry["subresource"].is_null()
            && entry["fieldsV1"][part].is_object()
            && time.is_some_and(|time| (window.from..=window.to).contains(&time))
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let writer = |entry: &Value| {
        let mut fields = Vec::new();
        add_fields(&entry["fieldsV1"][part], part.trim_start_matches("f:"), &mut fields);
        fields.truncate(FIELDS);
        Writer {
            manager: text(&entry["manager"]),
            time: text(&entry["time"]),
            object: format!("{kind} {}", text(&object["metadata"]["name"])),
            fields,
        }
    };
    entries.iter().filter(in_time).map(writer).collect()
}

fn add_fields(owned: &Value, path: &str, fields: &mut Vec<String>) {
    let members = owned.as_object().into_iter().flatten();
    let inner: Vec<_> = members.filter_map(|(name, inner)| Some((name.strip_prefix("f:")?, inner))).collect();
    if inner.is_empty() {
        fields.push(path.to_owned());
    }
    for (name, inner) in inner {
        add_fields(inner, &format!("{path}.{name}"), fields);
    }
}
