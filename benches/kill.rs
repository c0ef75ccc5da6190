//! kill -9, a thousand times and more: the kill loop of the tests with as many rounds as you like.
//!
//! `cargo bench --bench kill -- 1000`; a seed is taken from `AGENTD_SEED`.

#[expect(dead_code, reason = "of the crash tests only the loop is used here")]
#[path = "../tests/crash/mod.rs"]
mod crash;
#[expect(dead_code, reason = "of what tests share, the loop uses a part")]
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
    let each = figures.took / figures.rounds.max(1);
    println!("{figures:?}, {each:?} a round");
    ExitCode::SUCCESS
}
