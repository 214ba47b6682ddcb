//! Files with every key.

use skep_config::{
    Json, RunConfig,
    run_config::{AuthzDocument, Cedar, Middleware},
};

const SERVER: &str = include_str!("files/server.json");
const REMOTE: &str = include_str!("files/remote.json");

#[test]
fn every_key_is_written_back_in_its_order() {
    for file in [SERVER, REMOTE] {
        let rendered = RunConfig::parse(file).unwrap().render().unwrap();
        similar_asserts::assert_eq!(rendered + "\n", file);
    }
}

#[test]
fn every_kind_of_middleware_is_known() {
    let configs = [SERVER, REMOTE].map(|file| RunConfig::parse(file).unwrap());
    let unknown: Vec<&str> = configs
        .iter()
        .flat_map(|config| &config.middleware_configs)
        .filter(|middleware| matches!(middleware, Middleware::Unknown(_)))
        .map(Middleware::type_)
        .collect();
    assert_eq!(unknown, ["teleport"]);
}

#[test]
fn policies_are_read_as_they_were_written() {
    let config = RunConfig::parse(SERVER).unwrap();
    let document: AuthzDocument = config.authz_config.as_ref().unwrap().read().unwrap();
    let cedar = Cedar {
        policies: vec!["permit(principal, action, resource) when { context.arg_n < 3 && true };".into()],
        entities_json: "[]".into(),
        group_claim_name: "teams".into(),
        ..Cedar::default()
    };
    assert_eq!(document, AuthzDocument::with_cedar(cedar));
    assert_eq!(config.authz_config, Some(Json::new(&document).unwrap()));
}
