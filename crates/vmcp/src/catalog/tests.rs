use serde_json::json;
use skep_mcp::Era;

use super::*;

fn member(backend: &str, tools: &[&str]) -> Member {
    let item = |name: &&str| Item { key: (*name).into(), json: json!({"name": name}).to_string().into() };
    let tools: Vec<Item> = tools.iter().map(item).collect();
    let lists = Lists { prompts: tools.clone(), tools, ..Lists::default() };
    Member { backend: backend.into(), lists: Arc::new(lists) }
}

fn catalog(aggregation: serde_json::Value) -> Catalog {
    let members = [
        member("alpha", &["echo", "only_a"]),
        member("beta", &["echo", "only_b"]),
        member("gamma", &["only_g"]),
    ];
    Catalog::new(&members, &serde_json::from_value(aggregation).unwrap(), &[], &[])
}

fn names(catalog: &Catalog, list: List) -> Vec<&str> {
    catalog.table(list).iter().map(|entry| &*entry.key).collect()
}

#[test]
fn a_prefix_makes_every_name_unique() {
    let catalog = catalog(json!({"conflictResolutionConfig": {"prefixFormat": "{workload}."}}));
    let expected = ["alpha.echo", "alpha.only_a", "beta.echo", "beta.only_b", "gamma.only_g"];
    assert_eq!(names(&catalog, List::Tools), expected);
    assert_eq!(names(&catalog, List::Prompts), expected);
    let entry = catalog.table(List::Tools).get("beta.echo").unwrap();
    assert_eq!(
        (entry.origin().unwrap().to_string(), entry.json()),
        ("beta.echo".into(), r#"{"name":"beta.echo"}"#)
    );
}

#[test]
fn the_first_in_the_order_of_priority_keeps_the_name() {
    let config = |order: &[&str]| json!({"conflictResolution": "priority", "conflictResolutionConfig": {"priorityOrder": order}});
    let first = catalog(config(&["beta", "alpha"]));
    assert_eq!(names(&first, List::Tools), ["echo", "only_a", "only_b", "only_g"]);
    assert_eq!(first.table(List::Tools).get("echo").unwrap().origin().unwrap().to_string(), "beta.echo");
    assert_eq!(names(&first, List::Prompts), ["echo", "gamma_only_g", "only_a", "only_b"]);
    let unlisted = catalog(config(&["gamma"]));
    assert_eq!(names(&unlisted, List::Tools), ["alpha_echo", "beta_echo", "only_a", "only_b", "only_g"]);
}

#[test]
fn a_conflict_that_is_to_be_resolved_by_hand_is_named() {
    let unresolved = catalog(json!({"conflictResolution": "manual"}));
    assert!(unresolved.conflict().unwrap().contains("a tool \"echo\""), "{:?}", unresolved.conflict());
    let overrides = json!([{"workload": "beta", "overrides": {"echo": {"name": "echo_b"}}}]);
    let resolved = catalog(json!({"conflictResolution": "manual", "tools": overrides}));
    assert_eq!(resolved.conflict(), None);
    assert_eq!(names(&resolved, List::Tools), ["echo", "echo_b", "only_a", "only_b", "only_g"]);
    let overrides = json!([
        {"workload": "beta", "overrides": {"echo": {"name": "echo_b"}, "only_b": {"name": "echo_b"}}},
    ]);
    let of_one_backend = catalog(json!({"conflictResolution": "manual", "tools": overrides}));
    assert_eq!(of_one_backend.conflict(), None);
    assert_eq!(names(&of_one_backend, List::Tools), ["echo", "echo_b", "only_a", "only_g"]);
}

#[test]
fn resources_are_read_at_the_first_backend_in_the_order_of_priority_whose_template_fits() {
    let member = |backend: &str, template: &str| {
        let item = |key: &str| Item { key: key.into(), json: json!({"uriTemplate": key}).to_string().into() };
        let templates = vec![item(template), item("both://{x}")];
        Member { backend: backend.into(), lists: Arc::new(Lists { templates, ..Lists::default() }) }
    };
    let members = [member("alpha", "kit://{a}"), member("beta", "kit://{b}")];
    for (order, first) in
        [(json!(["beta", "alpha"]), "beta"), (json!(["alpha"]), "alpha"), (json!([]), "alpha")]
    {
        let aggregation =
            json!({"conflictResolution": "priority", "conflictResolutionConfig": {"priorityOrder": order}});
        let catalog = Catalog::new(&members, &serde_json::from_value(aggregation).unwrap(), &[], &[]);
        for uri in ["kit://1", "both://1"] {
            let origin = catalog.resource(uri).and_then(Entry::origin).unwrap();
            assert_eq!(&*origin.backend, first, "{uri}");
        }
    }
}

#[test]
fn a_page_ends_where_it_has_enough_bytes() {
    let text = "x".repeat(limits::PAGE_BYTES / 2);
    let item =
        |name: &str| Item { key: name.into(), json: json!({"name": name, "d": text}).to_string().into() };
    let tools = ["a", "b", "c"].iter().map(|name| item(name)).collect();
    let member = Member { backend: "m".into(), lists: Arc::new(Lists { tools, ..Lists::default() }) };
    let catalog = Catalog::new(&[member], &Aggregation::default(), &[], &[]);
    let first = catalog.table(List::Tools).page(None, Era::Modern).unwrap();
    let second = catalog.table(List::Tools).page(first.next.as_deref(), Era::Modern).unwrap();
    let count = |page: &Page| serde_json::from_str::<Vec<serde_json::Value>>(&page.items).unwrap().len();
    assert_eq!((count(&first), count(&second), second.next), (2, 1, None));
}

#[test]
fn a_filter_compares_the_overridden_name_and_a_hidden_tool_cannot_be_called() {
    let tools = json!([{"workload": "alpha", "filter": ["shout"], "overrides": {"echo": {"name": "shout"}}}]);
    let catalog = catalog(json!({"tools": tools, "defaultToolVisibility": "deny"}));
    assert_eq!(names(&catalog, List::Tools), ["alpha_shout"]);
    for hidden in ["alpha_echo", "alpha_only_a", "beta_echo"] {
        assert!(catalog.table(List::Tools).get(hidden).is_none(), "{hidden}");
    }
}

#[test]
fn pages_have_every_item_once_whatever_changes_meanwhile() {
    let many: Vec<String> = (0..2_500).map(|number| format!("t{number:04}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let all = Catalog::new(&[member("a", &many)], &Aggregation::default(), &[], &[]);
    let fewer = Catalog::new(&[member("a", &many[1..])], &Aggregation::default(), &[], &[]);
    let first = all.table(List::Tools).page(None, Era::Modern).unwrap();
    let second = fewer.table(List::Tools).page(first.next.as_deref(), Era::Modern).unwrap();
    let third = all.table(List::Tools).page(second.next.as_deref(), Era::Modern).unwrap();
    let counts = [first, second, third].map(|page| {
        let items: Vec<serde_json::Value> = serde_json::from_str(&page.items).unwrap();
        (items.len(), items[0]["name"].as_str().unwrap().to_owned(), page.next.is_some())
    });
    let expected = [(1_000, "a_t0000", true), (1_000, "a_t1000", true), (500, "a_t2000", false)];
    assert_eq!(counts, expected.map(|(count, first, more)| (count, first.to_owned(), more)));
    for cursor in ["!!", "", "_w"] {
        assert_eq!(all.table(List::Tools).page(Some(cursor), Era::Modern), Err(InvalidCursor), "{cursor}");
    }
}
