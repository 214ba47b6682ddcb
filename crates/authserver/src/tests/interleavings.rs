//! Users whose flows interleave in any way, at one server or at two, and who try to use each other's: nothing of one reaches another.

use std::sync::{Arc, Mutex, PoisonError};

use proptest::prelude::*;
use skep_testkit::{IdentityProvider, Redis};
use tokio::runtime::Runtime;

use super::{
    flow::{Flow, STEPS, Servers},
    stores::{PASSWORD, store_as},
    world::World,
};
use crate::{
    AuthServer,
    clock::Clock,
    rates::Rates,
    store::{MemoryStore, Store},
};

const USERS: [&str; 3] = ["ann", "bob", "cat"];
const CASES: u32 = 32;

/// What happens next: a user takes the next step, or tries to use what another user has, or requests reach the other server.
#[derive(Clone, Copy, Debug)]
enum Event {
    Step(usize),
    Theft { thief: usize, victim: usize },
    OtherServer,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let user = 0..USERS.len();
    let event = prop_oneof![
        6 => user.clone().prop_map(Event::Step),
        2 => (user.clone(), user).prop_map(|(thief, victim)| Event::Theft { thief, victim }),
        1 => Just(Event::OtherServer),
    ];
    prop::collection::vec(event, 20..60)
}

/// What is played at: two servers with one store, in turns.
struct Stage {
    servers: Servers,
    world: World,
    other: AuthServer,
}

impl Stage {
    async fn new(servers: Servers, provider: IdentityProvider, stores: [Arc<dyn Store>; 2]) -> Self {
        let [one, other] = stores;
        let world = World { server: servers.start(one).await, provider };
        Self { other: servers.start(other).await, world, servers }
    }

    /// All requests come from one address, which is limited.
    fn forget_requests(&mut self) {
        for server in [&mut self.world.server, &mut self.other] {
            server.rates = Rates::default();
        }
    }

    async fn play(&mut self, events: &[Event]) {
        let mut flows = USERS.map(Flow::new);
        let mut steps = USERS.map(|_| STEPS.into_iter());
        for event in events {
            match *event {
                Event::Step(user) => {
                    let Some(step) = steps[user].next() else { continue };
                    flows[user].step(&self.servers, &self.world, step).await.unwrap();
                }
                Event::Theft { thief, victim } if thief != victim => {
                    let (low, high) = (thief.min(victim), thief.max(victim));
                    let (left, right) = flows.split_at_mut(high);
                    let (one, other) = (&mut left[low], &mut right[0]);
                    let (thief, victim) = if thief < victim { (one, other) } else { (other, one) };
                    thief.steal(victim, &self.world).await;
                }
                Event::Theft { .. } => {}
                Event::OtherServer => std::mem::swap(&mut self.world.server, &mut self.other),
            }
        }
        // Everyone finishes, with tokens of their own, and what they have used is spent.
        for (flow, steps) in flows.iter_mut().zip(steps) {
            for step in steps {
                flow.step(&self.servers, &self.world, step).await.unwrap();
            }
            flow.step(&self.servers, &self.world, "use").await.unwrap();
        }
        for flow in &flows {
            flow.reuse(&self.world).await;
        }
    }
}

/// Plays at servers with these stores.
fn check(runtime: &Runtime, stores: [Arc<dyn Store>; 2]) {
    let stage = runtime.block_on(async {
        let (servers, provider) = Servers::new().await;
        Stage::new(servers, provider, stores).await
    });
    let stage = Mutex::new(stage);
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(CASES) }, |(events in events())| {
        // A case that fails is played again, with fewer events.
        let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
        stage.forget_requests();
        runtime.block_on(stage.play(&events));
    });
}

#[test]
fn no_token_of_one_user_reaches_another_however_their_flows_interleave() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Clock::default()));
    check(&Runtime::new().unwrap(), [store.clone(), store]);
}

#[test]
fn no_token_of_one_user_reaches_another_at_replicas_that_share_a_redis() {
    let runtime = Runtime::new().unwrap();
    let redis = runtime.block_on(Redis::with_password(PASSWORD));
    let store = || store_as(None, PASSWORD, redis.address().parse().unwrap(), None);
    check(&runtime, [store(), store()]);
}
