//! The methods about the daemon.

use super::{CHANGES, READS, methods};
use crate::DAEMON_EVENT;
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Agree on the protocol version and say who is calling. Optional, but others then see your name.
    Hello = "daemon.hello", p::HelloParams => p::HelloReply,
        READS.for_tools().errors(&[Code::UnsupportedVersion]);
    /// Version, places, numbers and the health of the storage.
    Status = "daemon.status", p::NoParams => p::StatusReply, READS.for_tools();
    /// What the daemon has done since it started, in numbers. `GET /metrics` on the socket gives them as text
    /// for Prometheus.
    Metrics = "daemon.metrics", p::NoParams => types::metrics::Metrics, READS;
    /// The configuration in force, with the place that each value comes from. Secrets are masked.
    Config = "daemon.config", p::ConfigParams => p::ConfigReply, READS.errors(&[Code::InvalidParams]);
    /// Follow all sessions, also those of sub-agents: created, changed and ended ones come as `daemon.event`
    /// notifications. Changes of one session that come together are one notification. After a very long pause
    /// of the reader, deleted sessions may be missing: list them again. Jobs and schedules come too, and
    /// `daemon.restarting` before a planned stop. End it with session.unsubscribe.
    Subscribe = "daemon.subscribe", p::DaemonSubscribeParams => p::SubscriptionId,
        READS.notifies(&[DAEMON_EVENT]).errors(&[Code::Overloaded]);
    /// Read the configuration again. What runs keeps what it began with; a wrong configuration is refused
    /// with its file and line, and the one in force stays.
    Reload = "daemon.reload", p::ReloadParams => p::ReloadReply,
        CHANGES.waits().errors(&[Code::InvalidParams, Code::Conflict, Code::ShuttingDown]);
    /// Copy the whole database to a new file while it is in use. The copy is checked and readable for its
    /// owner alone.
    Backup = "daemon.backup", p::BackupParams => p::BackupReply, CHANGES.waits().errors(&[Code::Conflict]);
    /// Read the whole database to see whether it is sound.
    Check = "daemon.check", p::NoParams => p::CheckReply, READS.waits();
    /// Stop the daemon. Sessions are kept; interrupted turns go on after the next start.
    Shutdown = "daemon.shutdown", p::ShutdownParams => p::Done, CHANGES.waits();
}
