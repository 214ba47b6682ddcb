//! What a step does.

use std::collections::BTreeMap;

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use serde_json::{Map, Value, json};
use skep_api::vmcp::NoAnswerAction;
use tokio::time::timeout;

use super::{
    data::{Data, Item},
    step::{Ended, run_for},
};
use crate::{
    Answer, CallError, Host, Question, StepStatus,
    coerce::{self, TreeBudget},
    compiled::{Action, Call, CompiledStep},
    result, validation,
};

/// The largest answer of a user.
const ANSWER: usize = 1 << 20;

/// Does it once. In a box, as the step of a loop is run by the same functions.
pub(super) fn act<'a>(
    step: &'a CompiledStep,
    data: &'a Data,
    host: &'a impl Host,
    item: Option<Item<'a>>,
) -> BoxFuture<'a, Result<Ended, CallError>> {
    match &step.action {
        Action::Call(call) => self::call(call, data, host, item).boxed(),
        Action::Elicit { .. } => elicit(step, data, host).boxed(),
        Action::ForEach { .. } => for_each(step, data, host).boxed(),
    }
}

async fn call(
    call: &Call,
    data: &Data,
    host: &impl Host,
    item: Option<Item<'_>>,
) -> Result<Ended, CallError> {
    let arguments = data.argument(&call.arguments, item);
    let arguments = arguments.map_err(|error| lasting(format!("arguments: {error}")))?;
    let arguments = match host.input_schema(&call.tool)? {
        Some(schema) => coerce::by_schema(arguments, &schema),
        None => arguments,
    };
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    let result = host.call(&call.tool, arguments).await?;
    data.take_room(&result).map_err(lasting)?;
    match result::failure(&result) {
        Some(message) => Err(CallError { message, is_final: false }),
        None => Ok(Ended::completed(result::output(&result), result::content(&result))),
    }
}

async fn elicit(step: &CompiledStep, data: &Data, host: &impl Host) -> Result<Ended, CallError> {
    let Action::Elicit { message, schema, on_decline, on_cancel } = &step.action else {
        return Err(lasting("it is no elicitation"));
    };
    let message = data.render(message, None).map_err(|error| lasting(format!("message: {error}")))?;
    let answer = match data.take_answer(&step.id) {
        Some(answer) => Ok(Ok(answer)),
        None => {
            let turn = if host.keeps_runs() { Some(data.turns.take(&step.id).await) } else { None };
            let time = step.timeout.saturating_sub(data.waited(&step.id)).min(data.rest());
            let question = Question { step: step.id.clone(), message, schema: schema.clone(), time };
            let checkpoint = turn.is_some().then(|| data.checkpoint(&step.id));
            let answer = timeout(time, host.elicit(question, checkpoint)).await;
            if answer.is_err() {
                host.withdraw().await;
            }
            answer
        }
    };
    let (action, then, reason) = match answer {
        Ok(Ok(Answer::Accept(content))) => {
            if content.to_string().len() > ANSWER {
                return Err(lasting("the answer is too large"));
            }
            validation::check(&content, schema, "the answer").map_err(lasting)?;
            return Ok(answered(json!({"action": "accept", "content": content})));
        }
        Ok(Ok(Answer::Decline)) => ("decline", on_decline, "the user declined"),
        Ok(Ok(Answer::Cancel)) => ("cancel", on_cancel, "the user dismissed the question"),
        Ok(Err(error)) => return Err(error),
        Err(_) => ("timeout", on_cancel, "the user did not answer in time"),
    };
    match then {
        NoAnswerAction::Abort => Err(lasting(reason)),
        NoAnswerAction::Continue => Ok(answered(json!({"action": action}))),
        NoAnswerAction::SkipRemaining => {
            let output = json!({"action": action, "skipped": true});
            Ok(Ended { skips_rest: true, ..answered(output) })
        }
    }
}

fn answered(output: Value) -> Ended {
    Ended::completed(output, json!([]))
}

async fn for_each(step: &CompiledStep, data: &Data, host: &impl Host) -> Result<Ended, CallError> {
    let Action::ForEach { collection, item: name, parallel, iterations, step: inner } = &step.action else {
        return Err(lasting("it is no loop"));
    };
    let text = data.render(collection, None).map_err(|error| lasting(format!("collection: {error}")))?;
    let size = TreeBudget::default().take(&text);
    let size = size.ok_or_else(|| lasting("collection: it has too many values"))?;
    // The output has the items again.
    host.reserve(2 * size)?;
    let items = match serde_json::from_str(&text) {
        Ok(Value::Array(items)) => items,
        Ok(Value::Null) => Vec::new(),
        _ => return Err(lasting("collection: it is not a JSON array")),
    };
    drop(text);
    if items.len() > *iterations {
        let message = format!("collection: it has {} items, and the maximum is {iterations}", items.len());
        return Err(lasting(message));
    }
    let mut runs = Vec::with_capacity(items.len());
    for (index, value) in items.iter().enumerate() {
        let item = Item { name, index, value };
        runs.push(run_item(inner, data, host, item).boxed());
    }
    let mut runs = stream::iter(runs).buffer_unordered(*parallel);
    let mut ended = BTreeMap::new();
    // The first that fails ends the others.
    while let Some(run) = runs.next().await {
        ended.extend([run.map_err(|message| CallError { message, is_final: false })?]);
    }
    let of = |status| ended.values().filter(|ended| ended.status == status).count();
    let (completed, failed) = (of(StepStatus::Completed), of(StepStatus::Failed));
    let iterations: Vec<Value> = items.iter().enumerate().zip(ended.values()).map(iteration).collect();
    let count = items.len();
    let output = json!({"iterations": iterations, "count": count, "completed": completed, "failed": failed});
    Ok(Ended::completed(output, json!([])))
}

async fn run_item(
    step: &CompiledStep,
    data: &Data,
    host: &impl Host,
    item: Item<'_>,
) -> Result<(usize, Ended), String> {
    match run_for(step, data, host, Some(item)).await {
        Ok(ended) => Ok((item.index, ended)),
        Err(error) => Err(format!("item {}: {error}", item.index)),
    }
}

fn iteration(((index, item), ended): ((usize, &Value), &Ended)) -> Value {
    let status = ended.status.as_str();
    let mut iteration = json!({"index": index, "item": item, "status": status, "output": ended.output});
    if let Some(error) = &ended.error {
        iteration["error"] = error.as_str().into();
    }
    iteration
}

/// An error that another attempt would not change.
fn lasting(message: impl Into<String>) -> CallError {
    CallError { message: message.into(), is_final: true }
}
