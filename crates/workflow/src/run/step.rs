//! One step: its condition, its attempts, and what happens when they fail.

use serde_json::{Value, json};
use skep_api::vmcp::ErrorAction;
use tokio::time::{sleep, timeout};

use super::{
    action::act,
    data::{Data, Item},
};
use crate::{
    CallError, Event, Host, StepStatus, coerce,
    compiled::{Action, CompiledStep},
};

/// How much longer each pause before another attempt is than the one before, and how much longer the last may be.
const BACK_OFF: f64 = 1.5;
const LONGEST_PAUSE: f64 = 60.0;

/// A step that has ended.
pub(super) struct Ended {
    pub(super) status: StepStatus,
    pub(super) output: Value,
    pub(super) content: Value,
    pub(super) error: Option<String>,
    /// Whether the steps that have not started are skipped.
    pub(super) skips_rest: bool,
}

impl Ended {
    pub(super) fn completed(output: Value, content: Value) -> Self {
        Self { status: StepStatus::Completed, output, content, error: None, skips_rest: false }
    }

    pub(super) fn skipped(step: &CompiledStep) -> Self {
        let output = step.defaults.clone();
        Self { status: StepStatus::Skipped, output, content: json!([]), error: None, skips_rest: false }
    }
}

/// Runs a step of the workflow.
pub(super) async fn run_step(step: &CompiledStep, data: &Data, host: &impl Host) -> Result<Ended, String> {
    host.record(Event::Started { step: &step.id });
    run_for(step, data, host, None).await
}

/// Runs a step, for an item if it is part of a loop. An error aborts the workflow.
pub(super) async fn run_for(
    step: &CompiledStep,
    data: &Data,
    host: &impl Host,
    item: Option<Item<'_>>,
) -> Result<Ended, String> {
    if let Some(condition) = &step.condition {
        let text = data.render(condition, item).map_err(|error| format!("condition: {error}"))?;
        match coerce::boolean(&text) {
            Some(true) => {}
            Some(false) => return Ok(Ended::skipped(step)),
            None => return Err(format!("condition: {text:?} is neither true nor false")),
        }
    }
    let attempts = attempts(step, data, host, item);
    let ended = match &step.action {
        // It has a limit of its own, as a user who does not answer is no failure.
        Action::Elicit { .. } => attempts.await,
        _ => match timeout(step.timeout, attempts).await {
            Ok(ended) => ended,
            Err(_) => Err(format!("it took longer than {} s", step.timeout.as_secs_f32())),
        },
    };
    match ended {
        Err(error) if step.on_error == ErrorAction::Continue => {
            Ok(Ended { status: StepStatus::Failed, error: Some(error), ..Ended::skipped(step) })
        }
        ended => ended,
    }
}

/// Runs it until it succeeds, as often as it may be tried.
async fn attempts(
    step: &CompiledStep,
    data: &Data,
    host: &impl Host,
    item: Option<Item<'_>>,
) -> Result<Ended, String> {
    let mut pause = step.retry_delay;
    for _ in 0..step.retries {
        match act(step, data, host, item).await {
            Err(CallError { is_final: false, .. }) => {}
            ended => return ended.map_err(|error| error.message),
        }
        sleep(pause).await;
        pause = pause.mul_f64(BACK_OFF).min(step.retry_delay.mul_f64(LONGEST_PAUSE));
    }
    act(step, data, host, item).await.map_err(|error| error.message)
}
