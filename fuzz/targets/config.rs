//! Configuration files of virtual servers: whatever the text, it is accepted or has errors, and what is accepted is accepted again as
//! the operator would write it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skep_api::vmcp::Config;

fuzz_target!(|text: &str| {
    let config = match Config::parse_checked(text) {
        Ok(config) => config,
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(error.to_string().len() < 100_000);
            }
            return;
        }
    };
    let errors = skep_workflow::check_tools(&config);
    let Ok(written) = config.render() else { return };
    let again = Config::parse_checked(&written).unwrap_or_else(|errors| panic!("{errors:?}: {written}"));
    assert_eq!(skep_workflow::check_tools(&again).is_empty(), errors.is_empty(), "{written}");
});
