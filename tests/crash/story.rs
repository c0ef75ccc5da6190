//! One crash and its aftermath: a house whose daemon dies at a chosen moment, what was seen before,
//! and the checks that follow every crash.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::invariants::{self, Journals};
use super::pilot::CrashTolerantClient;
use super::witness::ClientLog;
use crate::support::client::Session;
use crate::support::daemon::{CrashMode, TestDaemon, TestDaemonBuilder};
use crate::support::log::Log;
use crate::support::model_server::Step;
use crate::support::wait::until;

/// A house with a witness.
pub struct CrashScenario {
    pub daemon: TestDaemon,
    pub witness: Arc<ClientLog>,
    /// Processes of tools that were alive when the daemon was dead.
    orphans: HashSet<(i32, u64)>,
}

impl CrashScenario {
    /// A house whose daemon will die at `point`.
    pub async fn begin(plan: TestDaemonBuilder, point: &str, way: CrashMode) -> Self {
        let mut daemon = plan.build().await;
        daemon.crash_at(point, way);
        daemon.launch().await;
        Self { daemon, witness: Arc::default(), orphans: HashSet::new() }
    }

    /// A house whose daemon dies when it is killed.
    pub async fn start_idle(plan: TestDaemonBuilder) -> Self {
        Self { daemon: plan.start().await, witness: Arc::default(), orphans: HashSet::new() }
    }

    /// A new session, and a client that is not surprised by a crash.
    pub async fn session(&self) -> CrashTolerantClient {
        let session = self.daemon.client("alice").await.create(&self.daemon).await;
        self.pilot(session)
    }

    /// The same with more parameters.
    pub async fn session_with(&self, more: Value) -> CrashTolerantClient {
        let session = self.daemon.client("alice").await.create_with(&self.daemon, more).await;
        self.pilot(session)
    }

    /// Another connection to the same session.
    pub async fn join(&self, pilot: &CrashTolerantClient) -> CrashTolerantClient {
        CrashTolerantClient { client: self.daemon.client("bob").await, ..pilot.clone() }
    }

    /// A session spoken to by somebody whom a crash does not surprise.
    pub fn pilot(&self, session: Session) -> CrashTolerantClient {
        CrashTolerantClient {
            client: session.client,
            session: session.id,
            witness: Arc::clone(&self.witness),
        }
    }

    /// Where the journal lies.
    pub fn database(&self) -> PathBuf {
        self.daemon.path("data/agentd/agentd.db")
    }

    /// Waits until the daemon is dead at its point, and looks at what it left (I1–I4).
    pub async fn crashed(&mut self) -> Journals {
        self.daemon.crashed().await;
        self.is_dead().await
    }

    /// kill -9, now, and a look at what is left (I1–I4).
    pub async fn killed(&mut self) -> Journals {
        self.daemon.kill().await;
        self.is_dead().await
    }

    async fn is_dead(&mut self) -> Journals {
        self.note_orphans();
        self.check().await
    }

    /// The daemon is dead: what is left of its tools must be gone after the next start.
    pub fn note_orphans(&mut self) {
        let left = self.daemon.tool_processes().into_iter();
        self.orphans = left.filter_map(|pid| known(pid.as_raw())).collect();
    }

    /// I1–I4, on what is on the disk now.
    pub async fn check(&self) -> Journals {
        let notes = self.witness.notes().clone();
        invariants::check(&self.database(), &notes).await
    }

    /// The journal of one session as the living daemon tells it.
    pub async fn check_alive(&self, pilot: &CrashTolerantClient) -> Journals {
        let (session, _) = self.look(pilot).await;
        let events = session.events().await.into_iter();
        let journal = events.map(|event| (event["seq"].as_u64().expect("a number"), event)).collect();
        Journals::from([(pilot.session.clone(), journal)])
    }

    /// A daemon that lives: its socket answers (I8), and nothing of the dead one runs (I7).
    pub async fn restart(&mut self) {
        self.daemon.crash_no_more();
        self.daemon.launch().await;
        let left = || {
            let is_alive = |orphan: &&(i32, u64)| known(orphan.0) == Some(**orphan);
            self.orphans.iter().filter(is_alive).copied().collect::<Vec<_>>()
        };
        let seen = || format!("I7: alive after the restart: {:?}\n{}", left(), self.daemon.log());
        until("the processes of the dead daemon to be gone", seen, || left().is_empty().then_some(())).await;
    }

    /// The session over a new connection, and its whole journal from the beginning.
    pub async fn look(&self, pilot: &CrashTolerantClient) -> (Session, Log) {
        let session = Session { client: self.daemon.client("carol").await, id: pilot.session.clone() };
        let log = session.follow().await;
        (session, log)
    }

    /// The end of every story: one more turn in each session is in order (I6), and the whole is (I1–I5).
    pub async fn finish_and_check(mut self) -> Journals {
        let sessions: Vec<String> = self.witness.notes().sessions.keys().cloned().collect();
        self.daemon.models.otherwise(|_| Step::text("All is well."));
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
        self.killed().await
    }
}

/// A process and when it began, if it is alive.
fn known(pid: i32) -> Option<(i32, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    Some((pid, fields.get(19)?.parse().ok()?))
}

/// A call of the tool Bash.
pub fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command}))
}
