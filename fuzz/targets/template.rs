//! Templates of workflows: whatever the text, it is parsed and rendered within its limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use skep_gocompat::template::Template;

/// The longest text that a template may write.
const LONGEST: usize = 10 << 20;

fuzz_target!(|text: &str| {
    let Ok(template) = Template::parse(text) else { return };
    let data = json!({
        "params": {"a": "text", "n": 3, "f": 1.5, "list": [1, "two", null, {"k": true}], "o": {"a": {"b": {}}}},
        "steps": {"a": {"status": "completed", "output": {"text": "x", "items": [[1], [2]]}}},
    });
    if let Ok(rendered) = template.render(&data) {
        assert!(rendered.len() <= LONGEST);
    }
});
