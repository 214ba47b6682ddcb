//! What is known not to be met, or to differ through the proxy, and why. What does not happen any more fails the test, so
//! that nothing stays here for longer than it is true.

/// Scenarios that the server does not pass alone. None of them counts for a revision.
pub(crate) const ALONE: [(&str, &str); 10] = [
    ("server-sse-polling", "the Rust SDK cannot end a stream and go on in another one"),
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

/// Checks that end otherwise through the proxy than without it.
pub(crate) struct Known {
    /// The setup.
    pub(crate) way: &'static str,
    pub(crate) scenario: &'static str,
    /// The names of the checks.
    pub(crate) checks: &'static [&'static str],
    /// Why they cannot be the same.
    pub(crate) reason: &'static str,
}

const POLICIES: &str =
    "where there are policies, a method that they do not know is denied, and the server is not asked";

pub(crate) const KNOWN: [Known; 5] = [
    Known {
        way: "http with policies",
        scenario: "server-stateless",
        checks: &[
            "HttpServerMethodNotFound404",
            "HttpServerMethodNotFound404resourcessubscribe",
            "HttpServerMethodNotFound404resourcesunsubscribe",
        ],
        reason: POLICIES,
    },
    Known {
        way: "http with policies",
        scenario: "tasks-capability-negotiation",
        checks: &["TasksMethodsGatedWithoutExtension"],
        reason: POLICIES,
    },
    Known {
        way: "http with policies",
        scenario: "tasks-dispatch-and-envelope",
        checks: &["TasksGetUnknownTaskIdRejected", "TasksRemovedTasksList", "TasksRemovedTasksResult"],
        reason: POLICIES,
    },
    Known {
        way: "stdio",
        scenario: "server-sse-polling",
        checks: &["ServerDisconnectResume", "ServerSendsPrimingEvent", "ServerSendsRetryField"],
        reason: "a stdio server has no streams that could be resumed, and the proxy keeps none for it",
    },
    Known {
        way: "stdio",
        scenario: "http-custom-header-server-validation",
        checks: &[
            "ServerRejectsInvalidBase64Chars",
            "ServerRejectsInvalidBase64CharsErrorCode",
            "ServerRejectsInvalidBase64Padding",
            "ServerRejectsInvalidBase64PaddingErrorCode",
            "ServerRejectsMissingCustomHeader",
            "ServerRejectsMissingCustomHeaderErrorCode",
        ],
        reason: "a stdio server sees no headers, and the proxy, which does not know its tools, goes by none of these",
    },
];
