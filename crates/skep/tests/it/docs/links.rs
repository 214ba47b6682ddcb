use std::{
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;

use super::{files, root, shown};

/// The links of a page within the project: the file, and the heading in it if one is named.
fn links(page: &Path) -> Vec<(PathBuf, Option<String>)> {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let text = without_code(&fs::read_to_string(page).unwrap());
    let targets = link.captures_iter(&text).map(|link| link[1].to_owned());
    let here = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    here.map(|target| {
        let (file, heading) = match target.split_once('#') {
            Some((file, heading)) => (file, Some(heading.to_owned())),
            None => (target.as_str(), None),
        };
        let file = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
        (file, heading)
    })
    .collect()
}

fn without_code(text: &str) -> String {
    Regex::new(r"(?ms)^```.*?^```").unwrap().replace_all(text, "").into_owned()
}

/// The names by which the headings of a page can be linked to, as GitHub generates them.
fn headings(page: &Path) -> Vec<String> {
    let text = without_code(&fs::read_to_string(page).unwrap());
    let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
    headings
        .map(|heading| {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn every_link_leads_to_an_existing_file_and_heading() {
    let mut broken = Vec::new();
    for page in files(&root(), "md") {
        for (file, heading) in links(&page) {
            let exists =
                file.exists() && heading.as_ref().is_none_or(|heading| headings(&file).contains(heading));
            if !exists {
                let heading = heading.map(|heading| format!("#{heading}")).unwrap_or_default();
                broken.push(format!("{} links to {}{heading}", shown(&page), file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let docs = root().join("docs");
    let listed: Vec<_> =
        links(&docs.join("README.md")).into_iter().filter_map(|(file, _)| file.canonicalize().ok()).collect();
    for page in files(&docs, "md") {
        let contents = page == docs.join("README.md");
        assert!(contents || listed.contains(&page), "docs/README.md does not have {}", shown(&page));
    }
}

#[test]
fn every_kind_has_a_page_that_leads_to_an_example_of_it() {
    for crd in skep_api::crd::crds().unwrap() {
        let kind = crd.spec.names.kind;
        let page = root().join(format!("docs/kinds/{kind}.md"));
        assert!(page.exists(), "there is no docs/kinds/{kind}.md");
        let line = format!("\nkind: {kind}\n");
        let mut examples =
            links(&page).into_iter().filter(|(file, _)| file.extension().is_some_and(|e| e == "yaml"));
        let shows_it = |(file, _): (PathBuf, _)| fs::read_to_string(file).unwrap().contains(&line);
        assert!(examples.any(shows_it), "docs/kinds/{kind}.md leads to no example of it");
    }
}
