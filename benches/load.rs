//! The load generator: the real daemon, a fast model server of our own, raw JSON over the socket.
//!
//! `cargo bench --features fuzzing --bench load` measures everything, `-- b3 b5` only those. Every figure is a median of
//! five runs or more and stands beside a reference that was measured in the same run, since a figure
//! alone says more about the machine than about us.

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
#[path = "load/wire.rs"]
mod wire;

use std::process::ExitCode;

/// What a part of the bench can fail with: whatever it is, it is shown and the rest goes on.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// One part of the bench.
type Part = fn() -> Outcome<()>;

/// The parts: what chooses them, and what runs them.
const PARTS: [(&str, Part); 16] = [
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
    ("s13", isolation::run),
    ("flood", isolation::flood),
    ("torrent", isolation::torrent),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let measured = arguments.iter().any(|argument| argument == "--bench");
    if !measured || arguments.iter().any(|argument| argument == "--test") {
        println!("load: nothing to test; `cargo bench --features fuzzing --bench load` measures");
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .map(|argument| argument.to_lowercase())
        .collect();
    if let Some(unknown) = wanted.iter().find(|name| !PARTS.iter().any(|(part, _)| part == name)) {
        eprintln!("load: there is no part {unknown:?}; there is: {}", PARTS.map(|(part, _)| part).join(", "));
        return ExitCode::from(2);
    }
    figures::heading();
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
