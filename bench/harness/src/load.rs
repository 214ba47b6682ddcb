//! Clients, each with its own connection, one request after another.

use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use tokio::task::JoinSet;

use crate::{Client, Measured};

/// Sends a message for a given time, in one session per connection.
pub async fn load(client: &Client, connections: usize, time: Duration, message: Bytes) -> Result<Measured> {
    let start = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..connections {
        let (client, message) = (client.clone(), message.clone());
        callers.spawn(async move {
            let mut connection = client.connect().await?;
            connection.start_session().await?;
            connection.initialized().await?;
            let mut times = Vec::new();
            while start.elapsed() < time {
                let before = Instant::now();
                connection.send(&message).await?;
                times.push(before.elapsed());
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(caller) = callers.join_next().await {
        times.extend(caller??);
    }
    Ok(Measured::new(start.elapsed(), times))
}
