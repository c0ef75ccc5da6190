//! Runs the kill loops of the crash tests with any number of rounds: `cargo bench --bench kill -- 1000` over sessions,
//! `-- jobs 1000` over jobs. `-- night` runs 30 days of schedules with five kills. `-- upgrade` upgrades the daemon 20 times
//! in the middle of work. `AGENTD_SEED` sets the seed.
//!
//! A release has no clock that can be set, so `night` needs `--profile dev`; with it, `jobs` lets more slots fire.

#[expect(dead_code, reason = "only the loops of the crash tests are used here")]
#[path = "../tests/crash/mod.rs"]
mod crash;
#[expect(dead_code, reason = "the loops use a part of the test support")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("kill: nothing to test; `cargo bench --bench kill -- 1000` runs the loop");
        return ExitCode::SUCCESS;
    }
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let number: Option<u32> = arguments.iter().find_map(|argument| argument.parse().ok());
    let rounds = number.unwrap_or(1_000);
    let seed = std::env::var("AGENTD_SEED").ok().and_then(|seed| seed.parse().ok());
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("kill: no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let seed = seed.unwrap_or(1);
    if has("night") {
        if !cfg!(debug_assertions) {
            eprintln!(
                "kill: the clock of a release cannot be set; use `cargo bench --profile dev --bench kill -- night`"
            );
            return ExitCode::from(2);
        }
        runtime.block_on(crash::night::run(i64::from(number.unwrap_or(30)), 5, seed));
    } else if has("upgrade") {
        println!("{:?}", runtime.block_on(crash::upgrade_loop::run(number.unwrap_or(20))));
    } else if has("jobs") {
        let figures = runtime.block_on(crash::job_kill_loop::run(rounds, seed));
        println!("{figures:?}, {:?} per round", figures.took / figures.rounds.max(1));
    } else {
        let figures = runtime.block_on(crash::kill_loop::run(rounds, seed));
        println!("{figures:?}, {:?} per round", figures.took / figures.rounds.max(1));
    }
    ExitCode::SUCCESS
}
