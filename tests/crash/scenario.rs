//! One crash scenario: a daemon that dies at a chosen moment, the log of the clients before the crash,
//! and the checks after every crash.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::client_log::ClientLog;
use super::invariants::{self, Journals};
use super::tolerant_client::CrashTolerantClient;
use crate::support::client::Session;
use crate::support::daemon::{CrashMode, TestDaemon, TestDaemonBuilder};
use crate::support::log::Log;
use crate::support::model_server::Step;
use crate::support::wait::poll_until;

/// A test daemon with a [`ClientLog`].
pub struct CrashScenario {
    pub daemon: TestDaemon,
    pub client_log: Arc<ClientLog>,
    /// Tool processes that were alive when the daemon was dead, as pid and start time.
    orphans: HashSet<(i32, u64)>,
}

impl CrashScenario {
    /// A scenario whose daemon dies at `point`.
    pub async fn begin(plan: TestDaemonBuilder, point: &str, way: CrashMode) -> Self {
        let mut daemon = plan.build().await;
        daemon.crash_at(point, way);
        daemon.launch().await;
        Self { daemon, client_log: Arc::default(), orphans: HashSet::new() }
    }

    /// A scenario whose daemon dies only when the test kills it.
    pub async fn start_idle(plan: TestDaemonBuilder) -> Self {
        Self { daemon: plan.start().await, client_log: Arc::default(), orphans: HashSet::new() }
    }

    /// Creates a session and returns a client that tolerates crashes.
    pub async fn session(&self) -> CrashTolerantClient {
        let session = self.daemon.client("alice").await.create(&self.daemon).await;
        self.tolerant_client(session)
    }

    /// Same as `session`, with more parameters.
    pub async fn session_with(&self, more: Value) -> CrashTolerantClient {
        let session = self.daemon.client("alice").await.create_with(&self.daemon, more).await;
        self.tolerant_client(session)
    }

    /// Opens another connection to the same session.
    pub async fn join(&self, tolerant: &CrashTolerantClient) -> CrashTolerantClient {
        CrashTolerantClient { client: self.daemon.client("bob").await, ..tolerant.clone() }
    }

    /// A crash-tolerant client for an existing session.
    pub fn tolerant_client(&self, session: Session) -> CrashTolerantClient {
        CrashTolerantClient {
            client: session.client,
            session: session.id,
            client_log: Arc::clone(&self.client_log),
        }
    }

    /// Path of the database.
    pub fn database(&self) -> PathBuf {
        self.daemon.path("data/agentd/agentd.db")
    }

    /// Waits until the daemon is dead at its crash point, then checks the files (I1–I4).
    pub async fn wait_crashed(&mut self) -> Journals {
        self.daemon.wait_crashed().await;
        self.check_dead().await
    }

    /// Kills the daemon with SIGKILL, then checks the files (I1–I4).
    pub async fn kill_and_check(&mut self) -> Journals {
        self.daemon.kill().await;
        self.check_dead().await
    }

    async fn check_dead(&mut self) -> Journals {
        self.note_orphans();
        self.check().await
    }

    /// Records the tool processes that are still alive. After the next start, they must be gone.
    pub fn note_orphans(&mut self) {
        let left = self.daemon.tool_processes().into_iter();
        self.orphans = left.filter_map(|pid| running_process(pid.as_raw())).collect();
    }

    /// Checks I1–I4 on the current files.
    pub async fn check(&self) -> Journals {
        let notes = self.client_log.notes().clone();
        invariants::check(&self.database(), &notes).await
    }

    /// Checks the journal of one session as the running daemon returns it.
    pub async fn check_alive(&self, tolerant: &CrashTolerantClient) -> Journals {
        let (session, _) = self.reopen_session(tolerant).await;
        let events = session.events().await.into_iter();
        let journal = events.map(|event| (event["seq"].as_u64().expect("a number"), event)).collect();
        Journals::from([(tolerant.session.clone(), journal)])
    }

    /// Starts the daemon. Its socket must answer (I8), and no process of the dead daemon may run (I7).
    pub async fn restart(&mut self) {
        self.daemon.clear_crash_point();
        self.daemon.launch().await;
        let left = || {
            let is_alive = |orphan: &&(i32, u64)| running_process(orphan.0) == Some(**orphan);
            self.orphans.iter().filter(is_alive).copied().collect::<Vec<_>>()
        };
        let seen = || format!("I7: alive after the restart: {:?}\n{}", left(), self.daemon.log());
        poll_until("the processes of the dead daemon to be gone", seen, || left().is_empty().then_some(()))
            .await;
    }

    /// Opens the session over a new connection and reads its journal from the beginning.
    pub async fn reopen_session(&self, tolerant: &CrashTolerantClient) -> (Session, Log) {
        let session = Session { client: self.daemon.client("carol").await, id: tolerant.session.clone() };
        let log = session.follow().await;
        (session, log)
    }

    /// Ends every scenario: one more turn in each session succeeds (I6), and all files pass the checks
    /// (I1–I5).
    pub async fn finish_and_check(mut self) -> Journals {
        let sessions: Vec<String> = self.client_log.notes().sessions.keys().cloned().collect();
        self.daemon.models.set_fallback(|_| Step::text("All is well."));
        for id in sessions {
            let session = Session { client: self.daemon.client("dora").await, id };
            let mut log = session.follow().await;
            let turn = session.submit("Is all well?").await;
            let ended = log.find("the last turn's end", |event| {
                event["type"] == "turn.completed" && event["turn_id"] == turn.as_str()
            });
            assert_eq!(ended.await["result"]["subtype"], "success", "I6: the session is usable");
        }
        self.daemon.models.assert_no_breach();
        self.kill_and_check().await
    }
}

/// A process with its start time, if it is alive.
fn running_process(pid: i32) -> Option<(i32, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    Some((pid, fields.get(19)?.parse().ok()?))
}

/// A call of the tool `Bash`.
pub fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command}))
}
