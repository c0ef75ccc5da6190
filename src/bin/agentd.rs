//! The daemon's program: arguments in, exit code out.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// agentd: sessions of a coding agent, kept in a daemon and served on a Unix socket.
#[derive(Parser)]
#[command(name = "agentd", version)]
struct Arguments {
    /// Configuration file; then only that one is read.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Socket to serve.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Only check the database: prints what is not sound, and fails if anything is.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let options = agentd::daemon::Options { config: arguments.config, socket: arguments.socket };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("agentd: could not start: {error}");
            return ExitCode::from(4);
        }
    };
    if arguments.check {
        return match runtime.block_on(agentd::daemon::check(options)) {
            Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
            Ok(problems) => {
                problems.iter().for_each(|problem| println!("{problem}"));
                ExitCode::from(4)
            }
            Err(error) => {
                eprintln!("agentd: {error}");
                ExitCode::from(4)
            }
        };
    }
    match runtime.block_on(agentd::daemon::run(options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("agentd: {error}");
            ExitCode::from(4)
        }
    }
}
