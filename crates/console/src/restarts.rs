//! Containers that ended and were started again, and why.

use serde::Serialize;
use serde_json::Value;

/// A container that was restarted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Restart {
    /// The name of its pod.
    pub pod: String,
    /// Its name.
    pub container: String,
    /// How often it was started again.
    pub count: i64,
    /// How it ended the last time: `OOMKilled`, `Error`, `Completed`.
    pub reason: String,
    /// Its exit code then.
    pub exit_code: Option<i64>,
    /// When that was.
    pub time: String,
    /// What it wrote then.
    pub message: String,
}

/// The restarts of a pod.
pub fn restarts(pod: &Value) -> Vec<Restart> {
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

impl Restart {
    /// What happened, and why, for people.
    pub fn sentence(&self) -> String {
        let Self { pod, container, count, reason, exit_code, time, .. } = self;
        let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
        let start = format!("Pod {pod}: the container {container} restarted {times}");
        // The kubelet may have lost how it ended, after a restart of the node for example.
        if time.is_empty() {
            return format!("{start}; how it ended is not known");
        }
        let code = exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
        let words = self.words().map(|words| format!(" ({words})")).unwrap_or_default();
        format!("{start}, last at {time}: {reason}{code}{words}")
    }

    /// The last line that it wrote.
    pub fn last_line(&self) -> &str {
        self.message.lines().last().unwrap_or_default()
    }

    /// What reason and exit code mean. Codes above 128 are those of signals, as shells and container runtimes report them.
    fn words(&self) -> Option<&'static str> {
        match (self.reason.as_str(), self.exit_code?) {
            ("OOMKilled", _) => Some("it used more memory than its limit"),
            ("StartError" | "ContainerCannotRun", _) => Some("it could not be started"),
            (_, 0) => Some("it ended by itself, without an error"),
            (_, 126) => Some("its command cannot be executed"),
            (_, 127) => Some("its command does not exist"),
            (_, 134) => Some("it aborted"),
            (_, 137) => {
                Some("it was killed: by a failed liveness probe, the node, or the end of its grace period")
            }
            (_, 139) => Some("it crashed: an invalid memory access"),
            (_, 143) => Some("it was requested to stop: by a failed liveness probe, or by the node"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn restart(count: i64, ended: Value) -> Restart {
        let container = json!({"name": "mcp", "restartCount": count, "lastState": {"terminated": ended}});
        let pod = json!({"metadata": {"name": "a-0"}, "status": {"containerStatuses": [container]}});
        restarts(&pod).remove(0)
    }

    #[test]
    fn a_sentence_has_what_happened_and_what_it_means() {
        let sentence = |count: i64, reason: &str, code: i64| {
            let ended =
                json!({"reason": reason, "exitCode": code, "finishedAt": "T", "message": "one\ntwo\n"});
            let restart = restart(count, ended);
            assert_eq!(restart.last_line(), "two");
            restart.sentence()
        };
        let start = "Pod a-0: the container mcp restarted";
        assert_eq!(
            sentence(2, "OOMKilled", 137),
            format!(
                "{start} 2 times, last at T: OOMKilled, exit code 137 (it used more memory than its limit)"
            )
        );
        assert_eq!(
            sentence(1, "Completed", 0),
            format!("{start} once, last at T: Completed, exit code 0 (it ended by itself, without an error)")
        );
        assert_eq!(sentence(1, "Error", 3), format!("{start} once, last at T: Error, exit code 3"));
        assert_eq!(restart(1, Value::Null).sentence(), format!("{start} once; how it ended is not known"));
    }

    #[test]
    fn a_container_that_never_restarted_is_not_mentioned() {
        let pod = json!({"status": {"containerStatuses": [{"name": "a", "restartCount": 0}], "initContainerStatuses": 1}});
        assert!(restarts(&pod).is_empty());
    }
}
