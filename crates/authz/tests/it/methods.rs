//! How each method is authorized.

use skep_authz::{Action, Feature, Treatment, treatment};

#[test]
fn calls_are_checked_lists_are_filtered_and_unknown_methods_are_denied() {
    for (methods, expected) in [
        ("tools/call", Treatment::Check(Action::CallTool)),
        ("prompts/get", Treatment::Check(Action::GetPrompt)),
        ("resources/read resources/subscribe resources/unsubscribe", Treatment::Check(Action::ReadResource)),
        ("tools/list", Treatment::FilterList(Feature::Tool)),
        ("prompts/list", Treatment::FilterList(Feature::Prompt)),
        ("resources/list", Treatment::FilterList(Feature::Resource)),
        ("subscriptions/listen", Treatment::CheckEach(Action::ReadResource)),
        ("ping initialize server/discover roots/list logging/setLevel", Treatment::Always),
        ("completion/complete", Treatment::CheckReference),
        ("resources/templates/list features/list", Treatment::Always),
        ("notifications/initialized notifications/message notifications/progress", Treatment::Always),
        (
            "notifications/cancelled notifications/resources/updated notifications/tasks/status",
            Treatment::Always,
        ),
        ("notifications/roots/list_changed notifications/tools/list_changed", Treatment::Always),
        ("notifications/prompts/list_changed notifications/resources/list_changed", Treatment::Always),
        (
            "sampling/createMessage elicitation/create tasks/get tasks/result tasks/cancel tasks/list",
            Treatment::Deny,
        ),
        ("tools/Call TOOLS/CALL tools/call/ tools notifications/new rpc.discover", Treatment::Deny),
    ] {
        for method in methods.split(' ') {
            assert_eq!(treatment(method), expected, "{method}");
        }
    }
    assert_eq!(treatment(""), Treatment::Deny);
    assert_eq!(treatment(" tools/list"), Treatment::Deny);
}
