//! One run of a workflow.

mod action;
mod checkpoint;
mod data;
mod output;
mod step;
#[cfg(test)]
mod tests;
mod turns;

use std::time::Duration;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use serde_json::{Map, Value};

use crate::{Answer, Event, Host, StepStatus, Workflow, parameters};
pub use checkpoint::Checkpoint;
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
    run_rest(workflow, &Data::new(parameters, workflow.timeout), host).await
}

/// Goes on with a run that waits for an answer, with that answer, or to wait for it again. It must be of the same workflow.
pub fn resume<'a>(
    workflow: &'a Workflow,
    checkpoint: Checkpoint,
    answer: Option<Answer>,
    host: &'a impl Host,
) -> BoxFuture<'a, Result<Value, RunError>> {
    let data = Data::resumed(checkpoint, answer, workflow.timeout);
    async move { run_rest(workflow, &data, host).await }.boxed()
}

async fn run_rest(workflow: &Workflow, data: &Data, host: &impl Host) -> Result<Value, RunError> {
    let steps = run_steps(workflow, data, host);
    tokio::time::timeout(data.rest(), steps).await.map_err(|_| RunError::Timeout(workflow.timeout))??;
    match &workflow.output {
        Some(output) => {
            data.complete();
            output::output(output, data).map_err(RunError::Output)
        }
        None => Ok(data.last()),
    }
}

/// Runs all steps that have not ended, each as soon as those that it depends on have.
async fn run_steps(workflow: &Workflow, data: &Data, host: &impl Host) -> Result<(), RunError> {
    let steps = &workflow.steps;
    let mut has_ended: Vec<bool> = steps.iter().map(|step| data.has_step(&step.id)).collect();
    let mut waiting: Vec<usize> = (0..steps.len()).filter(|step| !has_ended[*step]).collect();
    let mut done = steps.len() - waiting.len();
    let mut running = FuturesUnordered::new();
    loop {
        let mut index = 0;
        while index < waiting.len() && running.len() < PARALLEL_STEPS {
            let step = waiting[index];
            let is_ready = || steps[step].depends_on.iter().all(|before| has_ended[*before]);
            if !data.may_start(&steps[step].id) || !is_ready() {
                index += 1;
                continue;
            }
            waiting.remove(index);
            data.start(&steps[step].id);
            running.push(run_step(&steps[step], data, host).map(move |ended| (step, ended)).boxed());
        }
        data.turns.set_running(running.len());
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
        data.put_step(id, &ended);
    }
    for step in waiting {
        done += 1;
        let step = &steps[step];
        let status = StepStatus::Skipped;
        host.record(Event::Ended { step: &step.id, status, error: None, done, of: steps.len() });
        data.put_step(&step.id, &Ended::skipped(step));
    }
    Ok(())
}
