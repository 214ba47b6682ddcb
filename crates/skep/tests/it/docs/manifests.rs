use std::fs;

use regex::Regex;
use serde_json::Value;
use skep_api::{GROUP, crd};

use super::{files, root, shown};

/// The YAML in a page, block by block.
fn blocks(text: &str) -> Vec<String> {
    let block = Regex::new(r"(?ms)^```yaml\n(.*?)^```").unwrap();
    block.captures_iter(text).map(|block| block[1].to_owned()).collect()
}

#[tokio::test]
async fn every_manifest_in_the_documentation_is_accepted() {
    let test = skep_testkit::namespace().await;
    let crds = crd::crds().unwrap();
    let mut accepted = 0;
    for page in files(&root(), "md") {
        for block in blocks(&fs::read_to_string(&page).unwrap()) {
            let page = shown(&page);
            let documents: Vec<Value> = serde_saphyr::from_multiple(&block)
                .unwrap_or_else(|error| panic!("{page}: {error}: {block}"));
            for document in documents {
                let api_version = document["apiVersion"].as_str().unwrap_or_default();
                if !api_version.starts_with(GROUP) {
                    continue;
                }
                let kind = document["kind"].as_str().unwrap_or_default();
                let known = crds.iter().find(|crd| crd.spec.names.kind == kind);
                let plural =
                    &known.unwrap_or_else(|| panic!("{page}: there is no kind {kind:?}")).spec.names.plural;
                let namespace = test.name();
                // A dry run with strict validation: an unknown field is an error.
                let path = format!(
                    "/apis/{api_version}/namespaces/{namespace}/{plural}?dryRun=All&fieldValidation=Strict"
                );
                let request = http::Request::post(path).body(document.to_string().into_bytes()).unwrap();
                let response = test.client().request::<Value>(request).await;
                response.unwrap_or_else(|error| panic!("{page}: {document}: {error}"));
                accepted += 1;
            }
        }
    }
    assert!(accepted > 3, "there are only {accepted}");
}
