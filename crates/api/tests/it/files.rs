//! The configuration file of a virtual MCP server, with every key.

use serde_json::Value;
use skep_api::vmcp::Config;

const FILE: &str = include_str!("files/vmcp.yaml");

fn value(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn every_key_is_written_back() {
    let rendered = Config::parse(FILE).unwrap().render().unwrap();
    similar_asserts::assert_eq!(value(&rendered), value(FILE));
}

#[test]
fn unknown_keys_are_errors_that_name_them_all() {
    let cases = [
        ("groupRef: duo", "groupReff"),
        ("issuer: https://login.example", "isuer"),
        ("endpoint: otel.example:4318", "endpont"),
        ("maxDataSize: 2048", "maxDatSize"),
    ];
    let mut text = FILE.to_owned();
    for (known, unknown) in cases {
        let (key, _) = known.split_once(':').unwrap();
        let replaced = text.replacen(known, &format!("{known}\n{}{unknown}: 1", indent(&text, known)), 1);
        assert_ne!(replaced, text, "{key}");
        text = replaced;
    }
    let mut errors: Vec<String> =
        Config::parse(&text).unwrap_err().iter().map(|error| error.field.to_string()).collect();
    errors.sort();
    assert_eq!(errors, ["audit.maxDatSize", "groupReff", "incomingAuth.oidc.isuer", "telemetry.endpont"]);
}

/// The white space before a line.
fn indent(text: &str, line: &str) -> String {
    let line = text.lines().find(|other| other.trim_start() == line).unwrap();
    line.chars().take_while(|c| *c == ' ').collect()
}

#[test]
fn a_value_of_another_type_is_an_error_that_names_its_field() {
    for (valid, invalid, field) in [
        ("duration: 1m30s", "durration: 1m30s", "rateLimiting.shared.refillPeriod"),
        ("maxToolsToReturn: 8", "maxToolsToReturn: many", "optimizer.maxToolsToReturn"),
        ("conflictResolution: priority", "conflictResolution: luck", "aggregation.conflictResolution"),
    ] {
        let errors = Config::parse(&FILE.replacen(valid, invalid, 1)).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].field.to_string(), field, "{}", errors[0]);
    }
}

#[test]
fn zeros_are_not_set_and_durations_are_normalised() {
    let text = "
        name: ''
        operational: {timeouts: {default: 30m, perWorkload: {one: 90s}}, failureHandling: {healthCheckTimeout: 0s}}
        audit: {enabled: false, detectApplicationErrors: false, maxDataSize: 0}
        aggregation: {conflictResolution: '', excludeAllTools: false}
        rateLimiting: {shared: {maxTokens: 1, refillPeriod: 1m}}
    ";
    let rendered = Config::parse(text).unwrap().render().unwrap();
    let expected = "
        operational: {timeouts: {default: 30m0s, perWorkload: {one: 1m30s}}, failureHandling: {}}
        audit: {detectApplicationErrors: false}
        aggregation: {}
        rateLimiting: {shared: {maxTokens: 1, refillPeriod: {duration: 1m0s}}}
    ";
    similar_asserts::assert_eq!(value(&rendered), value(expected));
}
