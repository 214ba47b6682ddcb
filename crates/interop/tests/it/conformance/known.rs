//! Known failures, and known differences through the proxy or a virtual server, with their reasons. An entry that no longer applies fails the
//! test.

/// Scenarios that the server does not pass alone. None of them counts for a revision.
pub(crate) const ALONE: [(&str, &str); 10] = [
    ("server-sse-polling", "the Rust SDK cannot end a stream and continue in another one"),
    ("tasks-lifecycle", TASKS),
    ("tasks-capability-negotiation", TASKS),
    ("tasks-wire-fields", TASKS),
    ("tasks-request-state-removal", TASKS),
    ("tasks-mrtr-input", TASKS),
    ("tasks-request-headers", TASKS),
    ("tasks-dispatch-and-envelope", TASKS),
    ("tasks-required-task-error", TASKS),
    ("tasks-mrtr-composition", TASKS),
];

const TASKS: &str = "the tasks extension: the server has no tasks";

/// Checks whose results differ through the proxy.
pub(crate) struct Known {
    /// The setup.
    pub(crate) setup: &'static str,
    pub(crate) scenario: &'static str,
    /// The names of the checks.
    pub(crate) checks: &'static [&'static str],
    /// Why they differ.
    pub(crate) reason: &'static str,
}

const POLICIES: &str = "where there are policies, an unknown method is denied and not forwarded";

const JSON: &str =
    "a virtual server responds in JSON where nothing comes before the response, and so needs no stream";

pub(crate) const KNOWN: [Known; 7] = [
    Known {
        setup: "http with policies",
        scenario: "server-stateless",
        checks: &[
            "HttpServerMethodNotFound404",
            "HttpServerMethodNotFound404resourcessubscribe",
            "HttpServerMethodNotFound404resourcesunsubscribe",
        ],
        reason: POLICIES,
    },
    Known {
        setup: "http with policies",
        scenario: "tasks-capability-negotiation",
        checks: &["TasksMethodsGatedWithoutExtension"],
        reason: POLICIES,
    },
    Known {
        setup: "http with policies",
        scenario: "tasks-dispatch-and-envelope",
        checks: &["TasksGetUnknownTaskIdRejected", "TasksRemovedTasksList", "TasksRemovedTasksResult"],
        reason: POLICIES,
    },
    Known {
        setup: "stdio",
        scenario: "server-sse-polling",
        checks: &["ServerDisconnectResume", "ServerSendsPrimingEvent", "ServerSendsRetryField"],
        reason: "a stdio server has no streams that could be resumed, and the proxy keeps none for it",
    },
    Known {
        setup: "stdio",
        scenario: "http-custom-header-server-validation",
        checks: &[
            "ServerRejectsInvalidBase64Chars",
            "ServerRejectsInvalidBase64CharsErrorCode",
            "ServerRejectsInvalidBase64Padding",
            "ServerRejectsInvalidBase64PaddingErrorCode",
            "ServerRejectsMissingCustomHeader",
            "ServerRejectsMissingCustomHeaderErrorCode",
        ],
        reason: "a stdio server sees no headers, and the proxy, which does not know its tools, checks none of these",
    },
    Known {
        setup: "virtual server",
        scenario: "server-sse-multiple-streams",
        checks: &["ServerSSEStreamsFunctional"],
        reason: JSON,
    },
    Known {
        setup: "virtual server",
        scenario: "server-sse-polling",
        checks: &[
            "ServerDisconnectResume",
            "ServerSSEContentType",
            "ServerSendsPrimingEvent",
            "ServerSendsRetryField",
        ],
        reason: JSON,
    },
];
