//! Containers that ended and were started again.

use serde::Serialize;
use serde_json::Value;

/// A container that was restarted.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Restart {
    pub(super) pod: String,
    pub(super) container: String,
    pub(super) count: i64,
    /// How it ended the last time: `OOMKilled`, `Error`, `Completed`.
    pub(super) reason: String,
    pub(super) exit_code: Option<i64>,
    pub(super) time: String,
    pub(super) message: String,
}

/// The restarts of a pod.
pub(super) fn restarts(pod: &Value) -> Vec<Restart> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lists = [&pod["status"]["initContainerStatuses"], &pod["status"]["containerStatuses"]];
    let containers = lists.into_iter().flat_map(|list| list.as_array().into_iter().flatten());
    let restarted =
        containers.filter(|container| container["restartCount"].as_i64().is_some_and(|count| count > 0));
    let restart = |container: &Value| {
        let ended = &container["lastState"]["terminated"];
        Restart {
            pod: text(&pod["metadata"]["name"]),
            container: text(&container["name"]),
            count: container["restartCount"].as_i64().unwrap_or_default(),
            reason: text(&ended["reason"]),
            exit_code: ended["exitCode"].as_i64(),
            time: text(&ended["finishedAt"]),
            message: text(&ended["message"]).trim().to_owned(),
        }
    };
    restarted.map(restart).collect()
}
