//! The methods about the daemon.

use super::{CHANGES, READS, methods};
use crate::DAEMON_EVENT;
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Agrees on the protocol version and returns it with the name and the role of the client. The call is optional;
    /// without it, other clients see no name.
    Hello = "daemon.hello", p::HelloParams => p::HelloReply,
        READS.for_tools().errors(&[Code::UnsupportedVersion]);
    /// Returns the version, the paths, the sizes and the health of the storage.
    Status = "daemon.status", p::NoParams => p::StatusReply, READS.for_tools();
    /// Returns counters of what the daemon has done since its start. `GET /metrics` on the socket returns them as text
    /// for Prometheus.
    Metrics = "daemon.metrics", p::NoParams => types::metrics::Metrics, READS;
    /// Returns the configuration in force, with the origin of each value. Secrets are masked.
    Config = "daemon.config", p::ConfigParams => p::ConfigReply, READS.errors(&[Code::InvalidParams]);
    /// Follows all sessions, also those of sub-agents, and returns the id of the subscription. Created, changed and
    /// ended sessions arrive as `daemon.event` notifications; changes of one session that come together are one
    /// notification. A reader that pauses for very long can miss deleted sessions, so it lists the sessions again.
    /// Changes of jobs and schedules arrive too, and `daemon.restarting` before a planned stop.
    /// `session.unsubscribe` ends the subscription.
    Subscribe = "daemon.subscribe", p::DaemonSubscribeParams => p::SubscriptionId,
        READS.notifies(&[DAEMON_EVENT]).errors(&[Code::Overloaded]);
    /// Reads the configuration again and returns the changed keys. Running work keeps the old values. A wrong
    /// configuration is refused with its file and line, and the old one stays.
    Reload = "daemon.reload", p::ReloadParams => p::ReloadReply,
        CHANGES.waits().errors(&[Code::InvalidParams, Code::Conflict, Code::ShuttingDown]);
    /// Copies the whole database to a new file while it is in use, checks the copy, and returns its path and size. Only
    /// the owner can read the file.
    Backup = "daemon.backup", p::BackupParams => p::BackupReply, CHANGES.waits().errors(&[Code::Conflict]);
    /// Reads the whole database and returns its problems.
    Check = "daemon.check", p::NoParams => p::CheckReply, READS.waits();
    /// Stops the daemon. Sessions are kept, and interrupted turns continue after the next start.
    Shutdown = "daemon.shutdown", p::ShutdownParams => p::Done, CHANGES.waits();
}
