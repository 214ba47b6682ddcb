//! The tool search: any text can be indexed and searched for, and a tool is found by its own name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skep_tool_search::{Index, Query, Tool, terms};

// A query, and then a tool on each line: its name and description. Short ones: an index is made for each input.
fuzz_target!(|text: &str| {
    let mut lines = text[..text.floor_char_boundary(512)].lines();
    let query = lines.next().unwrap_or_default();
    for term in terms(query) {
        assert!(!term.is_empty() && term.len() <= 64 * 3, "{term}");
    }
    let tools: Vec<Tool<'_>> = lines
        .take(4)
        .map(|line| {
            let (name, description) = line.split_once('\t').unwrap_or((line, ""));
            Tool { name: name.into(), description: description.into(), ..Tool::default() }
        })
        .collect();
    let index = Index::new(&tools);
    let keywords = query.split(',').collect();
    for hit in index.search(&Query { text: query, keywords }, None, 8) {
        assert!(hit.tool < tools.len() && hit.score.is_finite());
    }
    for (place, tool) in tools.iter().enumerate() {
        if tool.name.chars().any(char::is_alphanumeric) {
            let named = index.search(&Query { text: &tool.name, keywords: Vec::new() }, None, tools.len());
            assert!(named.iter().any(|hit| hit.tool == place), "{:?}", tool.name);
        }
    }
});
