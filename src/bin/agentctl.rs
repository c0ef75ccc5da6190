//! The terminal client. Everything is in `agentd::client`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(agentd::client::run(std::env::args_os()))
}
