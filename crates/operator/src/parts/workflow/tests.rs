//! One row for each rule, with what it says.

use serde_json::{Map, Value, json};
use skep_api::vmcp::CompositeTool;

use super::*;

fn good() -> Value {
    json!({
        "name": "plan",
        "description": "Plans a hike.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
        "steps": [
            {"id": "trails", "type": "tool", "tool": "maps.search", "arguments": {"q": "{{.params.place}}", "n": 3}},
            {
                "id": "day", "type": "elicitation", "message": "When?", "dependsOn": ["trails"],
                "schema": {"type": "object", "properties": {"date": {"type": "string"}}},
            },
            {
                "id": "all", "type": "forEach", "collection": "{{json .steps.trails.output.list}}",
                "dependsOn": ["day"], "step": {"id": "one", "tool": "weather.now", "arguments": {"at": "{{.forEach.item}}"}},
            },
        ],
        "output": {"properties": {
            "list": {"type": "array", "description": "What was found.", "value": "{{json .steps.all.output.iterations}}"},
        }},
    })
}

/// What is said of the good workflow with one change, by a JSON pointer. Null takes away.
fn said(pointer: &str, value: Value) -> Vec<String> {
    let mut tool = good();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match tool.pointer_mut(parent).unwrap() {
        Value::Object(map) if value.is_null() => drop(map.remove(name)),
        Value::Object(map) => drop(map.insert(name.into(), value)),
        Value::Array(items) if name == "-" => items.push(value),
        other => panic!("{other}"),
    }
    let tool: CompositeTool = serde_json::from_value(tool).unwrap();
    check(&tool).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn a_good_workflow_has_no_problem() {
    assert_eq!(said("/timeout", json!("10m")), [] as [&str; 0]);
}

#[test]
fn what_is_allowed_is_not_refused() {
    for (pointer, value) in [
        ("/parameters/properties/limit", json!({"type": ["integer", "null"], "minimum": 0})),
        ("/parameters/properties/self", json!({"$ref": "#/properties/place"})),
        ("/steps/0/condition", json!("")),
        ("/steps/0/timeout", json!("0s")),
        (
            "/steps/1/message",
            json!("{{index .steps \"trails\" \"output\" \"list\"}} {{.workflow.id}} {{.vars.any}}"),
        ),
        ("/steps/1/onDecline", json!({"action": "continue"})),
        ("/steps/2/itemVar", json!("item")),
        ("/steps/2/maxParallel", json!(0)),
        ("/steps/2/maxIterations", json!(1000)),
        ("/output/required", json!(["list"])),
        // What another step has waited for is done as well.
        ("/steps/2/step/arguments/more", json!("{{.steps.trails.output.more}}")),
    ] {
        assert_eq!(said(pointer, value), [] as [&str; 0], "{pointer}");
    }
}

fn skipped(step: &str, field: &str) -> String {
    format!(
        "steps[{step}].defaultResults: the step may be skipped, and .steps.{step}.output.{field} is used: \
         give {field} a default"
    )
}

#[test]
fn each_mistake_is_told_by_step_and_field() {
    let deep = |mut levels: usize| {
        let mut schema = json!({"type": "string"});
        while levels > 0 {
            schema = json!({"type": "array", "items": schema});
            levels -= 1;
        }
        schema
    };
    let nested = (0..11).fold(
        json!({"type": "string", "description": "d", "value": "x"}),
        |inner, _| json!({"type": "object", "description": "d", "properties": {"a": inner}}),
    );
    let large: Map<String, Value> = (0..9000).map(|n| (format!("field-{n}"), json!({}))).collect();
    for (pointer, value, message) in [
        // The tool.
        ("/name", json!(" "), "name: name the tool"),
        ("/description", Value::Null, "description: say what the tool does: models choose it by that"),
        (
            "/timeout",
            json!("-5m"),
            "timeout: \"-5m\" is not a duration: write numbers with units, such as 30s, 1m30s or 500ms",
        ),
        // Parameters.
        ("/parameters/type", json!("array"), "parameters.type: tools take an object: write object here"),
        ("/parameters/type", Value::Null, "parameters.type: it is missing: write object here"),
        (
            "/parameters/properties/place",
            json!({"type": "text"}),
            "parameters.properties.place.type: \"text\" is not a type: the types are array, boolean, integer, null, number, object, string",
        ),
        (
            "/parameters/properties/place",
            json!("string"),
            "parameters.properties.place: a schema is an object, or true or false",
        ),
        ("/parameters/required", json!("place"), "parameters.required: it must be a list of names"),
        (
            "/parameters/properties/n",
            json!({"enum": 1}),
            "parameters.properties.n.enum: it must be a list of values",
        ),
        (
            "/parameters/properties/n",
            json!({"minLength": -1}),
            "parameters.properties.n.minLength: -1 is not a whole number from 0",
        ),
        (
            "/parameters/properties/n",
            json!({"minimum": "1"}),
            "parameters.properties.n.minimum: \"1\" is not a number",
        ),
        (
            "/parameters/properties/n",
            json!({"multipleOf": 0}),
            "parameters.properties.n.multipleOf: 0 is not a number above 0",
        ),
        (
            "/parameters/properties/n",
            json!({"pattern": 1}),
            "parameters.properties.n.pattern: 1 is not a text",
        ),
        (
            "/parameters/properties/n",
            json!({"uniqueItems": 1}),
            "parameters.properties.n.uniqueItems: 1 is neither true nor false",
        ),
        (
            "/parameters/properties/n",
            json!({"anyOf": []}),
            "parameters.properties.n.anyOf: it must be a list of schemas",
        ),
        ("/parameters/$defs", json!([]), "parameters.$defs: it must be an object of schemas"),
        (
            "/parameters/properties/n",
            json!({"$ref": "https://a.example/s"}),
            "parameters.properties.n.$ref: \"https://a.example/s\" is elsewhere: put it under $defs",
        ),
        (
            "/parameters/properties/n",
            json!({"$ref": "#/$defs/n"}),
            "parameters.properties.n.$ref: \"#/$defs/n\" leads nowhere",
        ),
        (
            "/parameters/properties/n",
            deep(40),
            &format!("parameters.properties.n{}: schemas can be 32 levels deep", ".items".repeat(32)),
        ),
        // Steps and their order.
        ("/steps/-", json!({"id": "", "tool": "a"}), "steps[3].id: give the step an id"),
        (
            "/steps/-",
            json!({"id": "day", "tool": "a"}),
            "steps[3].id: there is another step \"day\": give each its own id",
        ),
        ("/steps/0/dependsOn", json!(["dya"]), "steps[trails].dependsOn: there is no step \"dya\""),
        (
            "/steps/0/dependsOn",
            json!(["trails"]),
            "steps[trails].dependsOn: trails → trails is a cycle, so none of these steps can ever start",
        ),
        (
            "/steps/0/dependsOn",
            json!(["all"]),
            "steps[trails].dependsOn: trails → all → day → trails is a cycle, so none of these steps can ever start",
        ),
        // Tools.
        ("/steps/0/tool", Value::Null, "steps[trails].tool: name the tool to call"),
        (
            "/steps/0/tool",
            json!("maps search"),
            "steps[trails].tool: \"maps search\" is not a tool: write its name, or workload.tool",
        ),
        (
            "/steps/0/tool",
            json!(".search"),
            "steps[trails].tool: \".search\" is not a tool: write its name, or workload.tool",
        ),
        (
            "/steps/0/tool",
            json!("maps."),
            "steps[trails].tool: \"maps.\" is not a tool: write its name, or workload.tool",
        ),
        (
            "/steps/-",
            json!({"id": "x", "tool": "a", "message": "b"}),
            "steps[x].type: there are both tool and message: say which it is",
        ),
        // Questions.
        ("/steps/1/message", Value::Null, "steps[day].message: say what to ask the user"),
        (
            "/steps/1/schema",
            json!({"type": "string"}),
            "steps[day].schema.type: users fill in an object: write object here",
        ),
        (
            "/steps/1/schema",
            json!({"properties": 1}),
            "steps[day].schema.properties: it must be an object of schemas",
        ),
        ("/steps/1/schema", deep(11), "steps[day].schema: it is deeper than 10 levels"),
        ("/steps/1/schema", json!({"properties": large}), "steps[day].schema: it is larger than 100 KB"),
        ("/steps/1/timeout", json!("11m"), "steps[day].timeout: 11m is longer than 10m, which is the most"),
        ("/steps/1/onDecline", json!({}), "steps[day].onDecline.action: say what to do"),
        ("/steps/1/onCancel", json!({}), "steps[day].onCancel.action: say what to do"),
        // Going through a list.
        (
            "/steps/2/tool",
            json!("a"),
            "steps[all].tool: a forEach step has none of its own: put it into step",
        ),
        (
            "/steps/2/message",
            json!("a"),
            "steps[all].message: a forEach step has none of its own: put it into step",
        ),
        (
            "/steps/2/collection",
            Value::Null,
            "steps[all].collection: give a template for the list to go through",
        ),
        ("/steps/2/step", Value::Null, "steps[all].step: say what to do for each item"),
        ("/steps/2/step", json!({"id": 5}), "steps[all].step: invalid type: integer `5`, expected a string"),
        ("/steps/2/step/id", json!(""), "steps[all].step.id: give the step an id"),
        (
            "/steps/2/step/type",
            json!("elicitation"),
            "steps[all].step.type: only a tool can be called for each item",
        ),
        ("/steps/2/step/tool", Value::Null, "steps[all].step.tool: name the tool to call"),
        ("/steps/2/maxParallel", json!(51), "steps[all].maxParallel: 51 is not between 0 and 50"),
        ("/steps/2/maxIterations", json!(-1), "steps[all].maxIterations: -1 is not between 0 and 1000"),
        (
            "/steps/2/step/onError",
            json!({"action": "retry"}),
            "steps[all].step.onError.retryCount: 0 is not between 1 and 10",
        ),
        // Failures.
        (
            "/steps/0/onError",
            json!({"action": "retry", "retryCount": 11}),
            "steps[trails].onError.retryCount: 11 is not between 1 and 10",
        ),
        (
            "/steps/0/onError",
            json!({"retryDelay": "soon"}),
            "steps[trails].onError.retryDelay: \"soon\" is not a duration: write numbers with units, such as 30s, 1m30s or 500ms",
        ),
        ("/steps/0/onError", json!({"action": "continue"}), &skipped("trails", "list")),
        ("/steps/0/condition", json!("{{eq .params.place \"\"}}"), &skipped("trails", "list")),
        ("/steps/2/condition", json!("{{.steps.trails.output.more}}"), &skipped("all", "iterations")),
        (
            "/steps/0/defaultResults",
            json!([]),
            "steps[trails].defaultResults: they must be an object, as the result of a step is",
        ),
        // Templates, and what they refer to.
        (
            "/steps/0/arguments/q",
            json!("{{.params.place"),
            "steps[trails].arguments.q: {{ is never closed: \"{{.params.place\"",
        ),
        (
            "/steps/0/arguments/n",
            json!([{"a": "{{lower .params.place}}"}]),
            "steps[trails].arguments.n[0].a: there is no function lower in \"{{lower .params.place}}\": there are json, quote, fromJson and those of Go's templates",
        ),
        (
            "/steps/0/arguments/q",
            json!("{{.params.palce}}"),
            "steps[trails].arguments.q: {{.params.palce}}: parameters.properties has no \"palce\"",
        ),
        (
            "/parameters",
            Value::Null,
            "steps[trails].arguments.q: {{.params.place}}: the tool has no parameters",
        ),
        (
            "/steps/1/message",
            json!("{{.steps.trials.output}}"),
            "steps[day].message: {{.steps.trials.output}}: there is no step \"trials\"",
        ),
        (
            "/steps/0/arguments/q",
            json!("{{.steps.day.output.content}}"),
            "steps[trails].arguments.q: {{.steps.day.output.content}}: the step does not wait for day: add it to dependsOn",
        ),
        (
            "/steps/0/arguments/q",
            json!("{{.steps.trails.output.x}}"),
            "steps[trails].arguments.q: {{.steps.trails.output.x}}: the step does not wait for trails: add it to dependsOn",
        ),
        (
            "/steps/1/message",
            json!("{{.steps.trails.result}}"),
            "steps[day].message: {{.steps.trails.result}}: a step has no \"result\": it has output, content, status, error",
        ),
        (
            "/steps/2/collection",
            json!("{{.steps.day.output.list}}"),
            "steps[all].collection: {{.steps.day.output.list}}: an answer has no \"list\": it has action, content, skipped",
        ),
        (
            "/steps/1/message",
            json!("{{.step.trails}}"),
            "steps[day].message: {{.step.trails}}: there is no step: templates know params, steps, vars, workflow and forEach",
        ),
        (
            "/steps/1/message",
            json!("{{.workflow.name}}"),
            "steps[day].message: {{.workflow.name}}: a workflow has no \"name\": it has id, duration_ms, step_count, status, start_time",
        ),
        (
            "/steps/2/collection",
            json!("{{.forEach.item}}"),
            "steps[all].collection: {{.forEach.item}}: there is no item outside of a forEach step's own step",
        ),
        (
            "/steps/2/itemVar",
            json!("trail"),
            "steps[all].step.arguments.at: {{.forEach.item}}: an item has no \"item\": it has trail, index",
        ),
        // The answer.
        ("/output/properties", json!({}), "output.properties: an answer needs at least one field"),
        ("/output/required", json!(["lost"]), "output.required: output.properties has no \"lost\""),
        (
            "/output/properties/list/description",
            Value::Null,
            "output.properties.list.description: say what the field means",
        ),
        (
            "/output/properties/list/value",
            Value::Null,
            "output.properties.list.value: the field needs a template for its value",
        ),
        (
            "/output/properties/list/value",
            json!("{{.steps.all.output.items}}"),
            "output.properties.list.value: {{.steps.all.output.items}}: a forEach step's output has no \"items\": it has iterations, count, completed, failed",
        ),
        (
            "/output/properties/list/properties",
            json!({}),
            "output.properties.list.properties: there is a value as well: keep one of the two",
        ),
        (
            "/output/properties/o",
            json!({"type": "object", "description": "d"}),
            "output.properties.o.value: an object needs a value or properties",
        ),
        (
            "/output/properties/o",
            json!({"type": "string", "description": "d", "properties": {}}),
            "output.properties.o.properties: type string has none: set value",
        ),
        (
            "/output/properties/o",
            json!({"type": "object", "description": "d", "properties": {"a": {"type": "text"}}}),
            "output.properties.o.properties.a: unknown variant `text`, expected one of `string`, `integer`, `number`, `boolean`, `object`, `array`",
        ),
        (
            "/output/properties/o",
            nested,
            &format!("output.properties.o{}: an answer can be 10 levels deep", ".properties.a".repeat(10)),
        ),
    ] {
        assert_eq!(said(pointer, value.clone()), [message], "{pointer}: {value}");
    }
    for name in ["index", "my-item", "1st"] {
        let expected =
            format!("steps[all].itemVar: {name:?} cannot be the name of an item: use letters, digits and _");
        assert_eq!(said("/steps/2/itemVar", json!(name))[0], expected);
    }
}

#[test]
fn a_workflow_has_steps_but_not_too_many() {
    assert_eq!(said("/steps", json!([]))[0], "steps: a workflow needs at least one step");
    let many: Vec<_> = (0..101).map(|n| json!({"id": format!("s{n}"), "tool": "a"})).collect();
    assert_eq!(
        said("/steps", json!(many))[0],
        "steps: there are 101 steps, and 100 are the most that can be run"
    );
}

#[test]
fn all_problems_are_told_at_once_up_to_a_number() {
    let bad: Vec<_> = (0..80).map(|n| json!({"id": format!("s{n}")})).collect();
    let told = said("/steps", json!(bad));
    assert_eq!(told.len(), 51);
    assert_eq!(told[50], "and 31 more problems");
}
