//! Whether a proxy may apply the StatefulSet.
//!
//! While a proxy is rolled, an old and a new one run side by side. Each knows the generation of the MCPServer that it
//! was started for, and writes it to an annotation of the pod template. The old one must not undo what the new one did.

use k8s_openapi::api::apps::v1::StatefulSet;
use skep_config::annotations;

/// Whether a proxy of this generation applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Apply,
    /// The StatefulSet is of a newer generation, this one.
    HoldBack(i64),
}

/// Only a generation that is strictly greater holds back: with an equal, a missing or an invalid one, the proxy applies.
/// A proxy without a generation, 0, applies always.
pub(super) fn verdict(ours: i64, live: Option<&StatefulSet>) -> Verdict {
    match live.and_then(generation) {
        Some(theirs) if ours > 0 && theirs > ours => Verdict::HoldBack(theirs),
        _ => Verdict::Apply,
    }
}

/// The generation that a StatefulSet's pod template was computed from.
fn generation(live: &StatefulSet) -> Option<i64> {
    let metadata = live.spec.as_ref()?.template.metadata.as_ref()?;
    metadata.annotations.as_ref()?.get(annotations::MCPSERVER_GENERATION)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn live(mark: Option<&str>) -> StatefulSet {
        let annotations = mark.map(|mark| json!({annotations::MCPSERVER_GENERATION: mark}));
        let template = json!({"metadata": {"annotations": annotations}});
        serde_json::from_value(json!({"metadata": {}, "spec": {"selector": {}, "template": template}}))
            .unwrap()
    }

    #[test]
    fn only_a_generation_that_is_greater_holds_back() {
        for (ours, theirs, expected) in [
            (4, Some("5"), Verdict::HoldBack(5)),
            (9, Some("10"), Verdict::HoldBack(10)),
            (5, Some("5"), Verdict::Apply),
            (6, Some("5"), Verdict::Apply),
            (4, None, Verdict::Apply),
            (4, Some(""), Verdict::Apply),
            (4, Some("five"), Verdict::Apply),
            (4, Some("5.0"), Verdict::Apply),
            (4, Some("9223372036854775808"), Verdict::Apply),
            (0, Some("5"), Verdict::Apply),
            (-1, Some("5"), Verdict::Apply),
        ] {
            assert_eq!(verdict(ours, Some(&live(theirs))), expected, "{ours} over {theirs:?}");
        }
        assert_eq!(verdict(4, None), Verdict::Apply);
    }
}
