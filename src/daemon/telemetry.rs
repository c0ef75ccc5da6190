//! Logs go to stderr: for people on a terminal, as JSON otherwise if asked for.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use super::config::{Config, LogFormat};

/// Starts logging. A second start in the same process changes nothing.
pub(super) fn start(config: &Config) {
    let level = config.daemon.log.as_str();
    // Libraries speak up only when something is wrong.
    let directives = format!("warn,agentd={level}");
    let filter = EnvFilter::try_new(&directives).unwrap_or_else(|_| EnvFilter::new("warn,agentd=info"));
    // A log line that cannot be written, on a full disk for instance, is lost: to say so on stderr,
    // which is the log, would panic in whatever task it happens to.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let _ = match config.daemon.log_format {
        LogFormat::Json => builder.json().try_init(),
        LogFormat::Human | LogFormat::Auto => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
    };
}
