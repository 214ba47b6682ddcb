//! Generated patches: a real API server has the same result, a template or an error.

use std::cell::Cell;

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use tokio::runtime::Builder;

use crate::{
    patches::{patches, template},
    server::Workload,
};

const CASES: u32 = 100;

#[test]
fn the_api_server_has_the_same_result() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let workload = runtime.block_on(async {
        let test = skep_testkit::namespace().await;
        Workload::create(&test, "generated", template()).await.unwrap()
    });
    let accepted = Cell::new(0);
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&patches(), |patch| {
        let there = runtime.block_on(workload.patched_there(&patch));
        let here = runtime.block_on(workload.patched_here(&patch));
        accepted.set(accepted.get() + u32::from(there.is_ok()));
        match (there, here) {
            (Err(_), Err(_)) => {}
            (there, here) => prop_assert_eq!(here, there),
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(accepted.get() > CASES / 2, "only {} of {CASES} patches were accepted", accepted.get());
}
