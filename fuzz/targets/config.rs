//! Configuration files of virtual servers: whatever the text, it is accepted or has errors, and what is accepted is accepted again as
//! the operator would write it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skep_api::vmcp::Config;
use skep_workflow::check_tools;

fuzz_target!(|text: &str| {
    let config = match Config::parse_checked(text, check_tools) {
        Ok(config) => config,
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(error.to_string().len() < 100_000);
            }
            return;
        }
    };
    let Ok(written) = config.render() else { return };
    if let Err(errors) = Config::parse_checked(&written, check_tools) {
        panic!("{errors:?}: {written}");
    }
});
