//! Runs the kill loop of the crash tests with any number of rounds: `cargo bench --bench kill -- 1000`.
//! `AGENTD_SEED` sets the seed.

#[expect(dead_code, reason = "only the loop of the crash tests is used here")]
#[path = "../tests/crash/mod.rs"]
mod crash;
#[expect(dead_code, reason = "the loop uses a part of the test support")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("kill: nothing to test; `cargo bench --bench kill -- 1000` runs the loop");
        return ExitCode::SUCCESS;
    }
    let rounds = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(1_000);
    let seed = std::env::var("AGENTD_SEED").ok().and_then(|seed| seed.parse().ok());
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("kill: no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let figures = runtime.block_on(crash::kill_loop::run(rounds, seed.unwrap_or(1)));
    let per_round = figures.took / figures.rounds.max(1);
    println!("{figures:?}, {per_round:?} per round");
    ExitCode::SUCCESS
}
