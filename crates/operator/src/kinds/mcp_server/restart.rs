//! Restarts that a user requests by annotations on the object.

use k8s_openapi::jiff::Timestamp;
use skep_config::annotations;
use skep_world::Watched;

use super::inputs::Inputs;
use crate::{reconcile::Actions, resources::Deployments};

/// A request for a restart.
struct Request<'a> {
    text: &'a str,
    time: Timestamp,
    immediate: bool,
}

fn annotation<'a>(inputs: &'a Inputs, key: &str) -> Option<&'a str> {
    inputs.object.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The user's request. One with an invalid time is ignored.
fn request(inputs: &Inputs) -> Option<Request<'_>> {
    let text = annotation(inputs, annotations::RESTARTED_AT)?;
    let immediate = annotation(inputs, annotations::RESTART_STRATEGY) == Some(annotations::IMMEDIATE);
    Some(Request { text, time: text.parse().ok()?, immediate })
}

/// Whether the request was processed before.
fn is_done(inputs: &Inputs, request: &Request<'_>) -> bool {
    let done = annotation(inputs, annotations::LAST_PROCESSED_RESTART)
        .and_then(|text| text.parse::<Timestamp>().ok());
    done.is_some_and(|done| request.time <= done)
}

/// When a restart of the pods was last requested, for their template. Removing a request does not restart them again.
pub(super) fn restarted_at(inputs: &Inputs) -> Option<String> {
    let before = inputs.proxy.deployment.as_ref().and_then(|deployment| deployment.restarted_at.clone());
    let rolling = request(inputs).filter(|request| !request.immediate && !is_done(inputs, request));
    rolling.map(|request| request.text.to_owned()).or(before)
}

/// An immediate restart deletes the pods; either way the request is marked as processed.
pub(super) fn actions(inputs: &Inputs) -> Actions {
    let Some(request) = request(inputs).filter(|request| !is_done(inputs, request)) else {
        return Actions::default();
    };
    let pods = inputs.proxy.pods.iter().map(|pod| (pod.name.clone(), pod.meta.clone()));
    let annotation = (annotations::RESTARTED_AT, request.text.to_owned());
    Actions {
        pods: if request.immediate { pods.collect() } else { Vec::new() },
        rollout: (!request.immediate && inputs.proxy.deployment.is_some())
            .then(|| (Deployments::kind(), inputs.proxy.identity.name.clone(), annotation)),
        annotations: [(annotations::LAST_PROCESSED_RESTART, request.text.to_owned())].into(),
    }
}
