//! Calls of a tool, through a virtual server and directly.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use bytes::Bytes;
use skep_bench_harness::{Client, Measured, Program, load, print_row};

use crate::{SETUPS, setup::Virtual};

/// The call of a tool.
pub(crate) fn call(name: &str) -> Bytes {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{{"question":"what is measured here?","depth":3}}}}}}"#
    )
    .into()
}

/// Measures in turns, so that all have the same conditions, and prints the turns whose ratios are in the middle.
pub(crate) async fn print(
    contenders: &[Program],
    connections: usize,
    turns: u32,
    time: Duration,
) -> Result<()> {
    print_row(&["", "calls/s", "of direct", "p50 ms", "p99 ms", "CPU us"].map(Into::into));
    for setup in SETUPS.into_iter().filter(|setup| !setup.slow) {
        let backends = setup.start().await?;
        let backend = backends.addresses[0];
        let mut programs = Vec::new();
        for contender in contenders {
            let program = Virtual::start(contender, &backends).await?;
            let address = program.running.address;
            run(address, connections, Duration::from_secs(1), "b0_ask_0")
                .await
                .with_context(|| contender.name.clone())?;
            programs.push((&contender.name, program, Vec::new()));
        }
        let mut direct = Vec::new();
        for _ in 0..turns {
            let measured = run(backend, connections, time, "ask_0").await?;
            let rate = measured.rate();
            direct.push(measured);
            for (_, program, turns) in &mut programs {
                let before = program.running.cpu()?;
                let measured = run(program.running.address, connections, time, "b0_ask_0").await?;
                let calls = u32::try_from(measured.count().max(1)).unwrap_or(u32::MAX);
                let cpu = (program.running.cpu()? - before) / calls;
                turns.push((measured.rate() / rate, measured, cpu));
            }
        }
        direct.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
        let middle = &direct[direct.len() / 2];
        row(&format!("{}: direct", setup.title), middle, None);
        for (name, _, mut turns) in programs {
            turns.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
            let (ratio, measured, cpu) = &turns[turns.len() / 2];
            row(&format!("{}: {name}", setup.title), measured, Some((*ratio, *cpu)));
        }
    }
    Ok(())
}

fn row(title: &str, measured: &Measured, more: Option<(f64, Duration)>) {
    let millis = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
    print_row(&[
        title.into(),
        format!("{:.0}", measured.rate()),
        more.map(|(ratio, _)| format!("{ratio:.2}")).unwrap_or_default(),
        millis(measured.at(0.5)),
        millis(measured.at(0.99)),
        more.map(|(_, cpu)| format!("{:.0}", cpu.as_secs_f64() * 1e6)).unwrap_or_default(),
    ]);
}

async fn run(address: SocketAddr, connections: usize, time: Duration, tool: &str) -> Result<Measured> {
    load(&Client::new(address, None), connections, time, call(tool)).await
}
