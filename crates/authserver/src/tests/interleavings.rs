//! Users whose flows interleave in any way, and who try to use each other's: nothing of one reaches another.

use std::sync::{Arc, Mutex, PoisonError};

use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::{
    flow::{Flow, STEPS, Servers},
    world::World,
};
use crate::{clock::Clock, store::MemoryStore};

const USERS: [&str; 3] = ["ann", "bob", "cat"];

/// What happens next: a user takes the next step, or tries to use what another user has.
#[derive(Clone, Copy, Debug)]
enum Event {
    Step(usize),
    Theft { thief: usize, victim: usize },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let user = 0..USERS.len();
    let event = prop_oneof![
        3 => user.clone().prop_map(Event::Step),
        1 => (user.clone(), user).prop_map(|(thief, victim)| Event::Theft { thief, victim }),
    ];
    prop::collection::vec(event, 20..60)
}

async fn play(servers: &Servers, world: &mut World, events: &[Event]) {
    world.server = servers.start(Arc::new(MemoryStore::new(Clock::default()))).await;
    let mut flows = USERS.map(Flow::new);
    let mut steps = USERS.map(|_| STEPS.into_iter());
    for event in events {
        match *event {
            Event::Step(user) => {
                let Some(step) = steps[user].next() else { continue };
                flows[user].step(servers, world, step).await.unwrap();
            }
            Event::Theft { thief, victim } if thief != victim => {
                let (low, high) = (thief.min(victim), thief.max(victim));
                let (left, right) = flows.split_at_mut(high);
                let (one, other) = (&mut left[low], &mut right[0]);
                let (thief, victim) = if thief < victim { (one, other) } else { (other, one) };
                thief.steal(victim, world).await;
            }
            Event::Theft { .. } => {}
        }
    }
    // Everyone finishes, with tokens of their own.
    for (flow, steps) in flows.iter_mut().zip(steps) {
        for step in steps {
            flow.step(servers, world, step).await.unwrap();
        }
        flow.step(servers, world, "use").await.unwrap();
    }
}

#[test]
fn no_token_of_one_user_reaches_another_however_their_flows_interleave() {
    let runtime = Runtime::new().unwrap();
    let (servers, provider) = runtime.block_on(Servers::new());
    let server = runtime.block_on(servers.start(Arc::new(MemoryStore::new(Clock::default()))));
    let world = Mutex::new(World { server, provider });
    proptest!(ProptestConfig::with_cases(32), |(events in events())| {
        // A case that fails is played again, with fewer events.
        let mut world = world.lock().unwrap_or_else(PoisonError::into_inner);
        runtime.block_on(play(&servers, &mut world, &events));
    });
}
