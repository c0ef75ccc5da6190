//! Logs to stderr: as text for a terminal, or as JSON if configured. Where stderr leads to journald, it gets the fields
//! directly.

use std::io::IsTerminal as _;
use std::os::fd::AsFd;
use std::sync::OnceLock;

use tracing_journald::{Priority, PriorityMappings};

use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt, reload};

use super::config::{Config, LogFormat, LogLevel};

/// Handle to the filter of the running log.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts logging. A second call in the same process changes nothing.
pub(super) fn start(config: &Config) {
    let (filter, handle) = reload::Layer::new(filter(config.daemon.log));
    // A log line that cannot be written, for example on a full disk, is lost. Reporting this error
    // would also write to stderr, and that would panic in the current task.
    let lines = fmt::layer().with_writer(std::io::stderr).log_internal_errors(false);
    // The event at the end of each span contains the duration of a turn, a phase, a model call or a tool call.
    let is_detailed = matches!(config.daemon.log, LogLevel::Debug | LogLevel::Trace);
    let lines = lines.with_span_events(if is_detailed { FmtSpan::CLOSE } else { FmtSpan::NONE });
    let stream = std::env::var("JOURNAL_STREAM").ok();
    let goes_to_journal = goes_to_journal(config.daemon.log_format, stream.as_deref(), std::io::stderr());
    let journal = goes_to_journal.then(tracing_journald::layer);
    let lines = match (config.daemon.log_format, journal) {
        (LogFormat::Json, _) => lines.json().boxed(),
        (LogFormat::Auto, Some(Ok(journal))) => journal
            .with_syslog_identifier("agentd".into())
            .with_field_prefix(Some("AGENTD".into()))
            .with_priority_mappings(PRIORITIES)
            .boxed(),
        (LogFormat::Human | LogFormat::Auto, _) => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
    };
    if tracing_subscriber::registry().with(filter).with(lines).try_init().is_ok() {
        let _ = FILTER.set(handle);
    }
}

/// Levels as other services use them: what happens in normal work is informational.
const PRIORITIES: PriorityMappings = PriorityMappings {
    error: Priority::Error,
    warn: Priority::Warning,
    info: Priority::Informational,
    debug: Priority::Debug,
    trace: Priority::Debug,
};

/// Whether journald gets the fields directly. A configured format is for another reader of the log.
fn goes_to_journal(format: LogFormat, stream: Option<&str>, fd: impl AsFd) -> bool {
    format == LogFormat::Auto && stream.is_some_and(|stream| is_stream(stream, fd))
}

/// Whether a descriptor is the stream `DEVICE:INODE` of systemd's `JOURNAL_STREAM`. A program that was started by a
/// service with another stderr inherits the variable too.
fn is_stream(stream: &str, fd: impl AsFd) -> bool {
    nix::sys::stat::fstat(fd).is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// Passes committed events to the exporter.
pub(super) struct ExportObserver(pub otel::EventReceiver);

impl session::Observer for ExportObserver {
    fn on_commit(&self, fact: &types::event::Envelope) {
        self.0.queue_event(fact);
    }
}

/// Changes the log level from now on.
pub(super) fn set_level(level: LogLevel) {
    if let Some(handle) = FILTER.get()
        && let Err(error) = handle.reload(filter(level))
    {
        tracing::warn!(%error, "could not change the log level");
    }
}

/// The crates of the workspace that log. A log line names its crate and module as target.
const LOGGING_CRATES: &[&str] = &[
    "agentd",
    "base",
    "daemon",
    "knowledge",
    "mcp",
    "model",
    "otel",
    "project",
    "rpc",
    "session",
    "store",
    "tools",
    "transport",
];

fn filter(level: LogLevel) -> EnvFilter {
    let directives = |level: &str| {
        // Libraries log only warnings and errors. Those that log whole addresses, which may hold keys, log nothing: the
        // daemon reports their failures itself.
        let libraries = "warn,rmcp=off,reqwest=off,hyper_util=off".to_owned();
        LOGGING_CRATES.iter().fold(libraries, |text, name| format!("{text},{name}={level}"))
    };
    EnvFilter::try_new(directives(level.as_str())).unwrap_or_else(|_| EnvFilter::new(directives("info")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_stream_is_recognised_by_device_and_inode_of_stderr() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let stat = nix::sys::stat::fstat(&writer).expect("its number");
        let stream = format!("{}:{}", stat.st_dev, stat.st_ino);
        assert!(is_stream(&stream, &writer) && is_stream(&stream, &reader));
        for (format, expected) in
            [(LogFormat::Auto, true), (LogFormat::Human, false), (LogFormat::Json, false)]
        {
            assert_eq!(goes_to_journal(format, Some(&stream), &writer), expected, "{format:?}");
            assert!(!goes_to_journal(format, None, &writer), "{format:?}");
        }
        let file = tempfile::tempfile().expect("a file");
        for (stream, fd) in [(stream.as_str(), file.as_fd()), ("", writer.as_fd()), ("1", writer.as_fd())] {
            assert!(!is_stream(stream, fd), "{stream}");
        }
        assert!(!is_stream(&format!("0{stream}"), &writer));
    }
}
