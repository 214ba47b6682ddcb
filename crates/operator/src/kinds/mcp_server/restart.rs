//! Restarts that a user asks for, by annotations on the object.

use k8s_openapi::jiff::Timestamp;
use skep_config::annotations;

use super::inputs::Inputs;
use crate::driver::Acts;

/// A request for a restart.
struct Request<'a> {
    text: &'a str,
    time: Timestamp,
    immediate: bool,
}

fn annotation<'a>(inputs: &'a Inputs, key: &str) -> Option<&'a str> {
    inputs.object.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// What the user asks for. A time that cannot be read asks for nothing.
fn request(inputs: &Inputs) -> Option<Request<'_>> {
    let text = annotation(inputs, annotations::RESTARTED_AT)?;
    let immediate = annotation(inputs, annotations::RESTART_STRATEGY) == Some(annotations::IMMEDIATE);
    Some(Request { text, time: text.parse().ok()?, immediate })
}

/// Whether the request has been carried out before.
fn is_done(inputs: &Inputs, request: &Request<'_>) -> bool {
    let done = annotation(inputs, annotations::LAST_PROCESSED_RESTART)
        .and_then(|text| text.parse::<Timestamp>().ok());
    done.is_some_and(|done| request.time <= done)
}

/// When the pods were last told to start anew, which their template says: by this request, or before. A request that
/// is taken back does not make them start once more.
pub(super) fn restarted_at(inputs: &Inputs) -> Option<String> {
    let before = inputs.proxied.deployment.as_ref().and_then(|deployment| deployment.restarted_at.clone());
    let rolling = request(inputs).filter(|request| !request.immediate && !is_done(inputs, request));
    rolling.map(|request| request.text.to_owned()).or(before)
}

/// For an immediate restart the pods are deleted; either way the request is noted as carried out.
pub(super) fn acts(inputs: &Inputs) -> Acts {
    let Some(request) = request(inputs).filter(|request| !is_done(inputs, request)) else {
        return Acts::default();
    };
    let pods = inputs.proxied.pods.iter().map(|pod| (pod.name.clone(), pod.meta.clone()));
    Acts {
        pods: if request.immediate { pods.collect() } else { Vec::new() },
        annotations: [(annotations::LAST_PROCESSED_RESTART, request.text.to_owned())].into(),
    }
}
