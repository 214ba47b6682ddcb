//! One run of a workflow.

mod action;
mod data;
mod output;
mod step;
#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use serde_json::{Map, Value};

use crate::{Event, Host, StepStatus, Workflow, parameters};
use data::Data;
use step::{Ended, run_step};

/// How many steps run at the same time.
const PARALLEL_STEPS: usize = 10;

/// Why a workflow has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The arguments do not fit the parameters.
    #[error("{0}")]
    Arguments(String),
    /// A step failed, and no other step ran after that.
    #[error("step {step:?} failed: {message}")]
    Step {
        /// The step.
        step: String,
        /// Why.
        message: String,
    },
    /// The output could not be made of the results.
    #[error("output: {0}")]
    Output(String),
    /// It took too long.
    #[error("the workflow took longer than {} s", .0.as_secs_f32())]
    Timeout(Duration),
}

/// Runs a workflow, and returns its output. Steps that still run end when the future is dropped.
pub fn run<'a>(
    workflow: &'a Workflow,
    arguments: Map<String, Value>,
    host: &'a impl Host,
) -> BoxFuture<'a, Result<Value, RunError>> {
    run_once(workflow, arguments, host).boxed()
}

async fn run_once(
    workflow: &Workflow,
    arguments: Map<String, Value>,
    host: &impl Host,
) -> Result<Value, RunError> {
    let parameters =
        parameters::checked(arguments, workflow.parameters.as_ref()).map_err(RunError::Arguments)?;
    let data = Data::new(parameters);
    let steps = run_steps(workflow, &data, host);
    let last = tokio::time::timeout(workflow.timeout, steps).await;
    let last = last.map_err(|_| RunError::Timeout(workflow.timeout))??;
    match &workflow.output {
        Some(output) => {
            data.complete();
            output::output(output, &data).map_err(RunError::Output)
        }
        None => Ok(last),
    }
}

/// Runs all steps, each as soon as those that it depends on have ended. Returns the output of the last one that completed.
async fn run_steps(workflow: &Workflow, data: &Data, host: &impl Host) -> Result<Value, RunError> {
    let steps = &workflow.steps;
    let mut waiting: Vec<usize> = (0..steps.len()).collect();
    let mut has_ended = vec![false; steps.len()];
    let mut done = 0;
    let mut last = Value::Object(Map::new());
    let mut running = FuturesUnordered::new();
    let mut skips = false;
    loop {
        let mut index = 0;
        while index < waiting.len() && running.len() < PARALLEL_STEPS && !skips {
            let step = waiting[index];
            if !steps[step].depends_on.iter().all(|before| has_ended[*before]) {
                index += 1;
                continue;
            }
            waiting.remove(index);
            running.push(run_step(&steps[step], data, host).map(move |ended| (step, ended)).boxed());
        }
        let Some((step, ended)) = running.next().await else { break };
        done += 1;
        has_ended[step] = true;
        let id = &steps[step].id;
        let ended = ended.map_err(|message| {
            let (status, of) = (StepStatus::Failed, steps.len());
            host.record(Event::Ended { step: id, status, error: Some(&message), done, of });
            RunError::Step { step: id.clone(), message }
        })?;
        let error = ended.error.as_deref();
        host.record(Event::Ended { step: id, status: ended.status, error, done, of: steps.len() });
        if ended.status == StepStatus::Completed {
            last = ended.output.clone();
        }
        skips |= ended.skips_rest;
        data.put_step(id, &ended);
    }
    for step in waiting {
        done += 1;
        let step = &steps[step];
        let status = StepStatus::Skipped;
        host.record(Event::Ended { step: &step.id, status, error: None, done, of: steps.len() });
        data.put_step(&step.id, &Ended::skipped(step));
    }
    Ok(last)
}
