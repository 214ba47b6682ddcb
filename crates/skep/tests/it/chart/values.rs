//! The values are documented in values.yaml, in its schema, and in the README.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;
use skep_operator::settings::DEFAULT_PROXY_IMAGE;

use super::text;

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&text(path)).unwrap()
}

fn schema(chart: &str) -> Value {
    serde_json::from_str(&text(&format!("{chart}/values.schema.json"))).unwrap()
}

/// The paths of all values that the schema lists. One without listed fields is one value.
fn in_schema(schema: &Value, path: &str, paths: &mut BTreeSet<String>) {
    match schema["properties"].as_object() {
        Some(fields) => {
            assert_eq!(schema["additionalProperties"], false, "{path} takes anything");
            for (name, field) in fields {
                in_schema(field, &format!("{path}.{name}"), paths);
            }
        }
        None => assert!(paths.insert(path.trim_start_matches('.').to_owned())),
    }
}

/// The first cells of the README's table.
fn in_readme(chart: &str) -> BTreeSet<String> {
    let text = text(&format!("{chart}/README.md"));
    let cells = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    cells.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn every_value_is_in_the_readme_and_in_the_schema_and_nothing_else_is() {
    for chart in ["skep", "skep-crds"] {
        let mut listed = BTreeSet::new();
        in_schema(&schema(chart), "", &mut listed);
        // Helm's own, which every chart has.
        assert!(listed.remove("global"));
        assert_eq!(in_readme(chart), listed, "{chart}");

        let values = yaml(&format!("{chart}/values.yaml"));
        // No default: what ToolHive's values files may have.
        let without = ["operator.gc.gomemlimit", "operator.gc.gogc", "operator.leaderElectionRole.rules"];
        for path in listed.iter().filter(|path| !without.contains(&path.as_str())) {
            let value = path.split('.').try_fold(&values, |value, name| value.get(name));
            assert!(value.is_some(), "{path} is not in values.yaml of {chart}");
        }
    }
}

/// The default of `--workers`, from the help of the operator.
fn workers() -> String {
    let help = Command::new(env!("CARGO_BIN_EXE_skep")).args(["operator", "-h"]).output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    let (_, rest) = help.split_once("--workers").unwrap();
    rest.split_once("[default: ").unwrap().1.split(']').next().unwrap().to_owned()
}

#[test]
fn the_chart_starts_as_many_workers_as_the_operator_has_by_default() {
    assert_eq!(yaml("skep/values.yaml")["operator"]["workers"].to_string(), workers());
}

#[test]
fn the_charts_have_the_version_of_the_program() {
    for chart in ["skep", "skep-crds"] {
        let chart = yaml(&format!("{chart}/Chart.yaml"));
        assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    }
    assert_eq!(yaml("skep/values.yaml")["operator"]["image"], DEFAULT_PROXY_IMAGE);
    let changes = text("../CHANGELOG.md");
    let newest = changes.lines().find_map(|line| line.strip_prefix("## ")).unwrap();
    assert_eq!(
        newest.split(' ').next(),
        Some(env!("CARGO_PKG_VERSION")),
        "the first section of the changelog"
    );
}
