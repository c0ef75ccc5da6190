//! The load generator: measures the real daemon with a fast model server, over its socket with raw JSON.
//!
//! `cargo bench --bench load` measures everything, `-- b3 b5` only these parts.
//! Most figures are medians of five runs or more, with a reference from the same run, because a figure alone also
//! depends on the machine.

#[path = "load/bare.rs"]
mod bare;
#[path = "load/calls.rs"]
mod calls;
#[path = "load/client.rs"]
mod client;
#[path = "load/cold.rs"]
mod cold;
#[path = "load/compare.rs"]
mod compare;
#[path = "load/daemon.rs"]
mod daemon;
#[path = "load/delta.rs"]
mod delta;
#[path = "load/fanout.rs"]
mod fanout;
#[path = "load/figures.rs"]
mod figures;
#[path = "load/isolation.rs"]
mod isolation;
#[path = "load/jobs.rs"]
mod jobs;
#[path = "load/many.rs"]
mod many;
#[path = "load/memory.rs"]
mod memory;
#[path = "load/model.rs"]
mod model;
#[path = "load/replay.rs"]
mod replay;
#[path = "load/restart.rs"]
mod restart;
#[path = "load/resume.rs"]
mod resume;
#[path = "load/stream.rs"]
mod stream;
#[path = "load/streaming_execution.rs"]
mod streaming_execution;
#[path = "load/submit.rs"]
mod submit;
#[path = "load/terminal.rs"]
mod terminal;
#[path = "load/trivial.rs"]
mod trivial;
#[path = "load/wire.rs"]
mod wire;

use std::process::ExitCode;

/// The result of a part or of one of its steps. If a part fails, its error is printed and the next part runs.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// One part of the bench.
type Part = fn() -> Outcome<()>;

/// The parts: name on the command line, and function.
const PARTS: [(&str, Part); 18] = [
    ("b1", cold::run),
    ("b2", memory::run),
    ("b3", submit::run),
    ("b4", delta::run),
    ("b5", stream::run),
    ("b6", many::run),
    ("b7", fanout::run),
    ("b8", calls::run),
    ("b9", replay::run),
    ("b10", resume::run),
    ("b11", restart::run),
    ("streaming", streaming_execution::run),
    ("terminal", terminal::run),
    ("trivial", trivial::run),
    ("jobs", jobs::run),
    ("s13", isolation::run),
    ("flood", isolation::run_flooding_tool),
    ("torrent", isolation::run_flooding_model),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    if !is_bench || arguments.iter().any(|argument| argument == "--test") {
        println!("load: nothing to test; `cargo bench --bench load` measures");
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .map(|argument| argument.to_lowercase())
        .collect();
    if let Some(unknown) = wanted.iter().find(|name| !PARTS.iter().any(|(part, _)| part == name)) {
        eprintln!(
            "load: unknown part {unknown:?}; the parts are: {}",
            PARTS.map(|(part, _)| part).join(", ")
        );
        return ExitCode::from(2);
    }
    figures::print_heading();
    let mut failed = false;
    for (part, run) in PARTS {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == part) {
            continue;
        }
        if let Err(error) = run() {
            eprintln!("load: {part} failed: {error}");
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
