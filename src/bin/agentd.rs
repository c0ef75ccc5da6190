//! The daemon's program: arguments in, exit code out.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

/// agentd: sessions of a coding agent, kept in a daemon and served on a Unix socket.
///
/// SIGTERM and SIGINT stop it, a second one hurries it, SIGHUP reads the configuration again. Exit
/// codes: 0 stopped as asked, 75 another daemon is there already, 78 the configuration or a folder is
/// wrong or a newer agentd wrote the database, 4 anything else.
#[derive(Parser)]
#[command(name = "agentd", version)]
struct Arguments {
    /// Configuration file; then only that one is read.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Socket to serve.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Say whether the configuration is right, and start nothing
    #[arg(long)]
    check_config: bool,
    /// Say whether the database is sound, and start nothing
    #[arg(long)]
    check_database: bool,
}

/// What a thread may still do after the end: one that hangs in a file system must not hold us.
const THREADS_TIMEOUT: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    agentd::daemon::ignore_hangup();
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(agentd::daemon::DOCUMENT_ARGUMENT) {
        // Started by a daemon, for one document.
        return match agentd::daemon::convert_document(&words.next().unwrap_or_default()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("agentd: {why}");
                ExitCode::from(agentd::daemon::exit::INTERNAL)
            }
        };
    }
    let arguments = Arguments::parse();
    let options = agentd::daemon::Options { config: arguments.config, socket: arguments.socket };
    let runtime = match agentd::daemon::runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("agentd: could not start: {error}");
            return ExitCode::from(agentd::daemon::exit::INTERNAL);
        }
    };
    if arguments.check_config {
        return match runtime.block_on(agentd::daemon::check_config(options)) {
            Ok(files) if files.is_empty() => print_text("no configuration file; the defaults hold"),
            Ok(files) => {
                let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
                print_text(&format!("the configuration is right: {}", files.join(", ")))
            }
            Err(error) => report_failure(&error),
        };
    }
    if arguments.check_database {
        return match runtime.block_on(agentd::daemon::check_database(options)) {
            Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
            Ok(problems) => {
                print_text(&problems.join("\n"));
                ExitCode::from(agentd::daemon::exit::INTERNAL)
            }
            Err(error) => report_failure(&error),
        };
    }
    let ended = runtime.block_on(agentd::daemon::run(options));
    runtime.shutdown_timeout(THREADS_TIMEOUT);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_failure(&error),
    }
}

fn print_text(text: &str) -> ExitCode {
    // The reader may be gone.
    let _ = writeln!(std::io::stdout(), "{text}");
    ExitCode::SUCCESS
}

fn report_failure(error: &agentd::daemon::DaemonError) -> ExitCode {
    let kind = error.kind().map(|kind| format!(" ({kind})")).unwrap_or_default();
    eprintln!("agentd: {error}{kind}");
    ExitCode::from(error.exit_code())
}
