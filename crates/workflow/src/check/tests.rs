//! One row for each rule, with its message.

use serde_json::{Map, Value, json};
use skep_api::vmcp::CompositeTool;

use super::*;

fn valid() -> Value {
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

/// The errors of the valid workflow with one change, by a JSON pointer. Null removes.
fn errors(pointer: &str, value: Value) -> Vec<String> {
    check(&changed(pointer, value)).iter().map(ToString::to_string).collect()
}

fn changed(pointer: &str, value: Value) -> CompositeTool {
    let mut tool = valid();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match tool.pointer_mut(parent).unwrap() {
        Value::Object(map) if value.is_null() => drop(map.remove(name)),
        Value::Object(map) => drop(map.insert(name.into(), value)),
        Value::Array(items) if name == "-" => items.push(value),
        other => panic!("{other}"),
    }
    serde_json::from_value(tool).unwrap()
}

#[test]
fn a_part_that_steps_do_not_have_is_a_warning() {
    let tool = changed("/steps/1/message", json!("{{.steps.trails.result}}"));
    assert_eq!(check(&tool), []);
    let warnings: Vec<_> = checked(&tool).into_warnings().iter().map(ToString::to_string).collect();
    let expected = "steps[1].message: {{.steps.trails.result}}: a step has no \"result\": it has output, content, \
                    status, error";
    assert_eq!(warnings, [expected]);
}

#[test]
fn a_valid_workflow_has_no_errors() {
    assert_eq!(errors("/timeout", json!("10m")), [] as [&str; 0]);
}

#[test]
fn every_valid_variant_is_accepted() {
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
        // Indirect dependencies are done as well.
        ("/steps/2/step/arguments/more", json!("{{.steps.trails.output.more}}")),
    ] {
        assert_eq!(errors(pointer, value), [] as [&str; 0], "{pointer}");
    }
}

fn skipped(index: usize, step: &str, field: &str) -> String {
    format!(
        "steps[{index}].defaultResults: the step may be skipped, and .steps.{step}.output.{field} is used: \
         set a default for {field}"
    )
}

#[test]
fn each_mistake_names_its_field() {
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
        ("/name", json!(" "), "name: is empty: name the tool"),
        (
            "/description",
            Value::Null,
            "description: is empty: describe what the tool does, as models choose tools by their description",
        ),
        (
            "/timeout",
            json!("-5m"),
            "timeout: \"-5m\" is not a duration: write numbers with units, such as 30s, 1m30s or 500ms",
        ),
        // Parameters.
        ("/parameters/type", json!("array"), "parameters.type: must be object"),
        ("/parameters/type", Value::Null, "parameters.type: is missing: set it to object"),
        (
            "/parameters/properties/place",
            json!({"type": "text"}),
            "parameters.properties[place].type: \"text\" is not a type: use one of array, boolean, integer, null, number, object, string",
        ),
        (
            "/parameters/properties/place",
            json!("string"),
            "parameters.properties[place]: must be an object, true or false",
        ),
        ("/parameters/required", json!("place"), "parameters.required: must be a list of names"),
        (
            "/parameters/properties/n",
            json!({"enum": 1}),
            "parameters.properties[n].enum: must be a list of values",
        ),
        (
            "/parameters/properties/n",
            json!({"minLength": -1}),
            "parameters.properties[n].minLength: -1 is not a non-negative integer",
        ),
        (
            "/parameters/properties/n",
            json!({"minimum": "1"}),
            "parameters.properties[n].minimum: \"1\" is not a number",
        ),
        (
            "/parameters/properties/n",
            json!({"multipleOf": 0}),
            "parameters.properties[n].multipleOf: 0 is not a number above 0",
        ),
        (
            "/parameters/properties/n",
            json!({"pattern": 1}),
            "parameters.properties[n].pattern: 1 is not a string",
        ),
        (
            "/parameters/properties/n",
            json!({"uniqueItems": 1}),
            "parameters.properties[n].uniqueItems: 1 is not a boolean",
        ),
        (
            "/parameters/properties/n",
            json!({"anyOf": []}),
            "parameters.properties[n].anyOf: must be a list of schemas",
        ),
        ("/parameters/$defs", json!([]), "parameters.$defs: must be an object of schemas"),
        (
            "/parameters/properties/n",
            json!({"$ref": "https://a.example/s"}),
            "parameters.properties[n].$ref: \"https://a.example/s\" is not in this schema: move it under $defs",
        ),
        (
            "/parameters/properties/n",
            json!({"$ref": "#/$defs/n"}),
            "parameters.properties[n].$ref: \"#/$defs/n\" does not exist",
        ),
        (
            "/parameters/properties/n",
            deep(40),
            &format!("parameters.properties[n]{}: is nested deeper than 32 levels", ".items".repeat(32)),
        ),
        // Steps and their order.
        ("/steps/-", json!({"id": "", "tool": "a"}), "steps[3].id: is empty: give the step an id"),
        (
            "/steps/-",
            json!({"id": "day", "tool": "a"}),
            "steps[3].id: duplicate of \"day\": rename one of them",
        ),
        ("/steps/0/dependsOn", json!(["dya"]), "steps[0].dependsOn[0]: there is no step \"dya\""),
        (
            "/steps/0/dependsOn",
            json!(["trails"]),
            "steps[0].dependsOn: trails → trails is a cycle, so none of these steps can ever start",
        ),
        (
            "/steps/0/dependsOn",
            json!(["all"]),
            "steps[0].dependsOn: trails → all → day → trails is a cycle, so none of these steps can ever start",
        ),
        // Tools.
        ("/steps/0/tool", Value::Null, "steps[0].tool: is required: name the tool to call"),
        (
            "/steps/0/tool",
            json!("maps search"),
            "steps[0].tool: \"maps search\" is not the name of a tool: use tool or workload.tool",
        ),
        (
            "/steps/0/tool",
            json!(".search"),
            "steps[0].tool: \".search\" is not the name of a tool: use tool or workload.tool",
        ),
        (
            "/steps/0/tool",
            json!("maps."),
            "steps[0].tool: \"maps.\" is not the name of a tool: use tool or workload.tool",
        ),
        (
            "/steps/-",
            json!({"id": "x", "tool": "a", "message": "b"}),
            "steps[3].type: is required when both tool and message are set",
        ),
        // Elicitations.
        ("/steps/1/message", Value::Null, "steps[1].message: is required: write the question for the user"),
        ("/steps/1/schema", json!({"type": "string"}), "steps[1].schema.type: must be object"),
        (
            "/steps/1/schema",
            json!({"properties": 1}),
            "steps[1].schema.properties: must be an object of schemas",
        ),
        ("/steps/1/schema", deep(11), "steps[1].schema: is nested deeper than 10 levels"),
        ("/steps/1/schema", json!({"properties": large}), "steps[1].schema: is larger than 100 KB"),
        ("/steps/1/timeout", json!("11m"), "steps[1].timeout: 11m is longer than the maximum of 10m"),
        ("/steps/1/onDecline", json!({}), "steps[1].onDecline.action: is required"),
        ("/steps/1/onCancel", json!({}), "steps[1].onCancel.action: is required"),
        // Loops.
        ("/steps/2/tool", json!("a"), "steps[2].tool: does not apply to a forEach step: move it into step"),
        (
            "/steps/2/message",
            json!("a"),
            "steps[2].message: does not apply to a forEach step: move it into step",
        ),
        (
            "/steps/2/collection",
            Value::Null,
            "steps[2].collection: is required: set it to a template for the list of items",
        ),
        ("/steps/2/step", Value::Null, "steps[2].step: is required: it runs for each item"),
        ("/steps/2/step", json!({"id": 5}), "steps[2].step.id: invalid type: integer `5`, expected a string"),
        (
            "/steps/2/step/condtion",
            json!("{{.params.x}}"),
            "steps[2].step.condtion: is not a known key: correct it, or remove it",
        ),
        ("/steps/2/step/id", json!(""), "steps[2].step.id: is empty: give the step an id"),
        (
            "/steps/2/step/type",
            json!("elicitation"),
            "steps[2].step.type: must be tool: no other type can run for each item",
        ),
        ("/steps/2/step/tool", Value::Null, "steps[2].step.tool: is required: name the tool to call"),
        ("/steps/2/maxParallel", json!(51), "steps[2].maxParallel: 51 is not between 0 and 50"),
        ("/steps/2/maxIterations", json!(-1), "steps[2].maxIterations: -1 is not between 0 and 1000"),
        (
            "/steps/2/step/onError",
            json!({"action": "retry"}),
            "steps[2].step.onError.retryCount: 0 is not between 1 and 10",
        ),
        // Failures.
        (
            "/steps/0/onError",
            json!({"action": "retry", "retryCount": 11}),
            "steps[0].onError.retryCount: 11 is not between 1 and 10",
        ),
        (
            "/steps/0/onError",
            json!({"retryDelay": "soon"}),
            "steps[0].onError.retryDelay: \"soon\" is not a duration: write numbers with units, such as 30s, 1m30s or 500ms",
        ),
        ("/steps/0/onError", json!({"action": "continue"}), &skipped(0, "trails", "list")),
        ("/steps/0/condition", json!("{{eq .params.place \"\"}}"), &skipped(0, "trails", "list")),
        ("/steps/2/condition", json!("{{.steps.trails.output.more}}"), &skipped(2, "all", "iterations")),
        (
            "/steps/0/defaultResults",
            json!([]),
            "steps[0].defaultResults: must be an object, as the result of a step is one",
        ),
        // Templates, and what they refer to.
        (
            "/steps/0/arguments/q",
            json!("{{.params.place"),
            "steps[0].arguments[q]: {{ is not closed: \"{{.params.place\"",
        ),
        (
            "/steps/0/arguments/n",
            json!([{"a": "{{lower .params.place}}"}]),
            "steps[0].arguments[n][0][a]: there is no function lower in \"{{lower .params.place}}\": use json, quote, fromJson or a function of Go's templates",
        ),
        (
            "/steps/0/arguments/q",
            json!("{{.params.palce}}"),
            "steps[0].arguments[q]: {{.params.palce}}: parameters.properties has no \"palce\"",
        ),
        (
            "/steps/1/message",
            json!("{{.steps.trials.output}}"),
            "steps[1].message: {{.steps.trials.output}}: there is no step \"trials\"",
        ),
        (
            "/steps/0/arguments/q",
            json!("{{.steps.day.output.content}}"),
            "steps[0].arguments[q]: {{.steps.day.output.content}}: the step does not wait for day: add it to dependsOn",
        ),
        (
            "/steps/0/arguments/q",
            json!("{{.steps.trails.output.x}}"),
            "steps[0].arguments[q]: {{.steps.trails.output.x}}: the step does not wait for trails: add it to dependsOn",
        ),
        (
            "/steps/0/arguments/q",
            json!("{{.steps.day.result}}"),
            "steps[0].arguments[q]: {{.steps.day.result}}: the step does not wait for day: add it to dependsOn",
        ),
        (
            "/steps/2/collection",
            json!("{{.steps.day.output.list}}"),
            "steps[2].collection: {{.steps.day.output.list}}: an answer has no \"list\": it has action, content, skipped",
        ),
        (
            "/steps/1/message",
            json!("{{.step.trails}}"),
            "steps[1].message: {{.step.trails}}: there is no step: use params, steps, vars, workflow or forEach",
        ),
        (
            "/steps/1/message",
            json!("{{.workflow.name}}"),
            "steps[1].message: {{.workflow.name}}: a workflow has no \"name\": it has id, duration_ms, step_count, status, start_time",
        ),
        (
            "/steps/2/collection",
            json!("{{.forEach.item}}"),
            "steps[2].collection: {{.forEach.item}}: there is no item outside of the step of a forEach step",
        ),
        (
            "/steps/2/itemVar",
            json!("trail"),
            "steps[2].step.arguments[at]: {{.forEach.item}}: an item has no \"item\": it has trail, index",
        ),
        // The output.
        (
            "/output/properties",
            json!({}),
            "output.properties: is empty: an output needs at least one property",
        ),
        ("/output/required", json!(["lost"]), "output.required[0]: output.properties has no \"lost\""),
        (
            "/output/properties/list/description",
            Value::Null,
            "output.properties[list].description: is empty: describe the property",
        ),
        (
            "/output/properties/list/value",
            Value::Null,
            "output.properties[list].value: is required: set it to a template",
        ),
        (
            "/output/properties/list/value",
            json!("{{.steps.all.output.items}}"),
            "output.properties[list].value: {{.steps.all.output.items}}: a forEach step's output has no \"items\": it has iterations, count, completed, failed",
        ),
        (
            "/output/properties/list/properties",
            json!({}),
            "output.properties[list].properties: value is set, too: remove one of them",
        ),
        (
            "/output/properties/o",
            json!({"type": "object", "description": "d"}),
            "output.properties[o].value: an object needs a value or properties",
        ),
        (
            "/output/properties/o",
            json!({"type": "string", "description": "d", "properties": {}}),
            "output.properties[o].properties: do not apply to type string: set value instead",
        ),
        (
            "/output/properties/o",
            json!({"type": "object", "description": "d", "properties": {"a": {"type": "text"}}}),
            "output.properties[o].properties[a].type: unknown variant `text`, expected one of `string`, `integer`, `number`, `boolean`, `object`, `array`",
        ),
        (
            "/output/properties/o",
            nested,
            &format!("output.properties[o]{}: is nested deeper than 10 levels", ".properties[a]".repeat(10)),
        ),
    ] {
        assert_eq!(errors(pointer, value.clone()), [message], "{pointer}: {value}");
    }
    for name in ["index", "my-item", "1st"] {
        let expected =
            format!("steps[2].itemVar: {name:?} cannot be the name of an item: use letters, digits and _");
        assert_eq!(errors("/steps/2/itemVar", json!(name))[0], expected);
    }
}

#[test]
fn a_workflow_has_steps_but_not_too_many() {
    assert_eq!(errors("/steps", json!([]))[0], "steps: is empty: a workflow needs at least one step");
    let many: Vec<_> = (0..101).map(|n| json!({"id": format!("s{n}"), "tool": "a"})).collect();
    assert_eq!(errors("/steps", json!(many))[0], "steps: has 101 steps, and the maximum is 100");
}

#[test]
fn all_mistakes_are_reported_up_to_a_limit() {
    let bad: Vec<_> = (0..80).map(|n| json!({"id": format!("s{n}")})).collect();
    let listed = errors("/steps", json!(bad));
    assert_eq!(listed.len(), 51);
    assert_eq!(listed[50], "and 31 more errors");
}

#[test]
fn every_mistake_of_a_part_is_a_field_error() {
    let mut tool = valid();
    tool["name"] = json!("");
    tool["steps"][0]["tool"] = Value::Null;
    let tool: CompositeTool = serde_json::from_value(tool).unwrap();
    let fields: Vec<_> = check_as_part(&tool).iter().map(|error| error.field.to_string()).collect();
    assert_eq!(fields, ["name", "steps[0].tool"]);
}
