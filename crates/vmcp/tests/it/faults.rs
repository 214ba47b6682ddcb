//! Backends that fail in every way, one after the other and at random.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::join_all;

use crate::{
    Server,
    backend::{Backend, Mood},
    client::text,
    in_fast_time,
};

const TIMES: &str = "operational: {timeouts: {default: 500ms}}\n";

#[tokio::test]
async fn every_failure_of_a_backend_is_an_error_that_names_it() {
    const BROKEN: &str = "it closed the connection before its response was complete";
    const INVALID: &str = "its response is not a valid MCP message";
    let silent = [Mood::Hangs, Mood::Stalls].map(|mood| (mood, "it sent nothing within 0.5 s"));
    let others = [
        (Mood::Status(500), "it responded with HTTP 500"),
        (Mood::Status(503), "it responded with HTTP 503"),
        (Mood::Status(403), "it rejects the credentials of this request, or needs some (HTTP 403)"),
        (Mood::Garbage, INVALID),
        (Mood::Truncates, BROKEN),
        (Mood::Breaks, BROKEN),
        (Mood::Overflows, INVALID),
        (Mood::Redirects, "it responded with HTTP 307"),
        (Mood::Floods, "its response is too large"),
        (Mood::Confuses, BROKEN),
    ];
    for (times, failures) in [(TIMES, &silent[..]), ("", &others)] {
        let backend = Backend::start().await;
        let server = Server::before(&[("a", &backend)], times).await;
        let client = server.client().await;
        let whoami = client.call("a_whoami").await;
        for (mood, reason) in failures {
            backend.set(*mood);
            let failed = client.call("a_echo").await;
            assert_eq!(text(&failed), (&*format!("backend a: {reason}"), true), "{mood:?}");
            backend.set(Mood::Good);
            assert_eq!(text(&client.call("a_whoami").await), text(&whoami), "after {mood:?}");
        }
    }
}

#[tokio::test]
async fn all_who_wait_for_a_session_share_the_failure_of_a_backend_that_opens_none() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], TIMES).await;
    let client = server.client().await;
    assert_eq!(client.tools().await.len(), 3);
    let before = backend.received("initialize").len();
    backend.hold_sessions(true);
    let failed = join_all((0..8).map(|_| client.call("a_echo"))).await;
    assert!(
        failed.iter().all(|failed| text(failed).0.contains("it sent nothing within 0.5 s")),
        "{failed:?}"
    );
    assert_eq!(backend.received("initialize").len(), before + 1, "one has tried, for all of them");
    backend.hold_sessions(false);
    assert!(!text(&client.call("a_echo").await).1);
}

#[tokio::test]
async fn a_backend_that_stalls_while_a_session_opens_holds_no_later_call() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], TIMES).await;
    let client = server.client().await;
    assert_eq!(client.tools().await.len(), 3);
    backend.set(Mood::Stalls);
    let (failed, other) = tokio::join!(client.call("a_echo"), client.call("a_echo"));
    for failed in [failed, other] {
        assert_eq!(text(&failed), ("backend a: it sent nothing within 0.5 s", true));
    }
    backend.set(Mood::Good);
    assert!(!text(&client.call("a_echo").await).1);
}

#[tokio::test]
async fn without_any_backend_a_list_is_an_error_or_empty_as_configured() {
    let backend = Backend::start().await;
    backend.set(Mood::Status(503));
    let handling = |mode: &str| format!("operational: {{failureHandling: {{partialFailureMode: {mode}}}}}\n");
    let server = Server::before(&[("a", &backend)], &handling("fail")).await;
    let list = server.client().await.request("tools/list", serde_json::json!({})).await;
    assert_eq!(list["error"]["message"], "no backend is available: a (backend_unavailable)", "{list}");
    let server = Server::before(&[("a", &backend)], &handling("best_effort")).await;
    assert!(server.client().await.tools().await.is_empty());
}

/// MCP: a maximum must be enforced whatever progress is reported.
#[tokio::test]
async fn a_call_ends_in_time_also_if_its_backend_sends_log_messages_for_ever() {
    let backend = Backend::start().await;
    let server = Server::before(&[("a", &backend)], TIMES).await;
    let client = server.client().await;
    client.call("a_echo").await;
    backend.set(Mood::EndlessLogs);
    let failed = in_fast_time(client.call("a_echo")).await;
    assert_eq!(text(&failed), ("backend a: it has not completed the request within 30 s", true));
}

/// Numbers that depend on a seed alone.
struct Random(u64);

impl Random {
    /// One below this.
    fn below(&mut self, bound: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}

/// For how long a busy machine has let this process wait, all in all. No call can be faster.
#[derive(Default)]
struct Delays(AtomicU64);

impl Delays {
    /// Counts for ever.
    async fn count(self: Arc<Self>) {
        const PAUSE: Duration = Duration::from_millis(10);
        loop {
            let started = Instant::now();
            tokio::time::sleep(PAUSE).await;
            let delay = started.elapsed().saturating_sub(PAUSE).as_millis() as u64;
            self.0.fetch_add(delay, Ordering::Relaxed);
        }
    }

    fn total(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// What happens to a backend.
async fn trouble(backend: &mut Backend, random: &mut Random) {
    const MOODS: [Mood; 15] = [
        Mood::Good,
        Mood::Hangs,
        Mood::Status(401),
        Mood::Status(404),
        Mood::Status(502),
        Mood::Status(503),
        Mood::Garbage,
        Mood::Slow(50),
        Mood::EndlessPages,
        Mood::Stalls,
        Mood::Truncates,
        Mood::Breaks,
        Mood::Overflows,
        Mood::Redirects,
        Mood::Confuses,
    ];
    match random.below(MOODS.len() + 2) {
        number if number < MOODS.len() => backend.set(MOODS[number]),
        number if number == MOODS.len() => backend.lose_sessions(),
        _ => {
            backend.kill().await;
            tokio::time::sleep(Duration::from_millis(random.below(60) as u64)).await;
            backend.start_again().await;
        }
    }
}

/// A property: under load, and whatever backends do, every call ends within its time, with the right response or an error
/// that names the backend, and one that is not in trouble is not affected.
///
/// SKEP_SEED repeats a run.
#[tokio::test(flavor = "multi_thread")]
async fn every_call_ends_in_time_with_its_result_or_an_error_that_names_the_backend() {
    /// How often a call may wait for the backend: for the session that it may have to open, for its response, for a check whether
    /// the session is lost, and for the same in another one.
    const WAITS: u32 = 7;
    let limit = Duration::from_millis(500) * WAITS + Duration::from_secs(1);
    let delays = Arc::new(Delays::default());
    let watched = tokio::spawn(delays.clone().count());
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = std::env::var("SKEP_SEED").map_or_else(|_| now(), |seed| seed.parse().unwrap());
    println!("SKEP_SEED={seed}");
    let mut random = Random(seed | 1);
    let [mut a, mut b, c] = [Backend::start().await, Backend::start().await, Backend::start().await];
    let times = "operational: {timeouts: {perWorkload: {a: 500ms, b: 500ms}}}\n";
    let server = Server::before(&[("a", &a), ("b", &b), ("c", &c)], times).await;
    let clients = join_all((0..6).map(|_| server.client())).await;
    for client in &clients {
        assert_eq!(client.tools().await.len(), 9);
    }
    let is_over = AtomicBool::new(false);
    let load = clients.iter().enumerate().map(|(number, client)| {
        let (is_over, delays) = (&is_over, &delays);
        async move {
            let mut turn = 0;
            while !is_over.load(Ordering::Relaxed) {
                let name = ["a", "b", "c"][(number + turn) % 3];
                let (started, delayed) = (Instant::now(), delays.total());
                let response = client.call(&format!("{name}_echo")).await;
                let (words, failed) = text(&response);
                let is_right = if failed && name != "c" {
                    words.starts_with(&format!("backend {name}: "))
                } else {
                    !failed && words.starts_with("\"echo\" s")
                };
                assert!(is_right, "{name}: {response}");
                let limit = limit + (delays.total() - delayed);
                assert!(started.elapsed() < limit, "{name}: {:?} {response}", started.elapsed());
                turn += 1;
            }
            turn
        }
    });
    let troubles = async {
        for turn in 0..60 {
            trouble(if turn % 2 == 0 { &mut a } else { &mut b }, &mut random).await;
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        a.set(Mood::Good);
        b.set(Mood::Good);
        is_over.store(true, Ordering::Relaxed);
    };
    let (turns, ()) = tokio::join!(join_all(load), troubles);
    watched.abort();
    assert!(turns.iter().all(|turns| *turns > 3), "there was no load: {turns:?}");
    for client in &clients {
        for tool in ["a_echo", "b_echo"] {
            // The machine may be busy for as long as a backend may take.
            let mut response = client.call(tool).await;
            while text(&response).0.contains("it sent nothing within") {
                response = client.call(tool).await;
            }
            assert!(!text(&response).1, "one that is back is used again: {response}");
        }
    }
}
