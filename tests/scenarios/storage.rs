//! Failing storage: a full disk, a limit on file sizes, immutable files, a commit that succeeds but is
//! reported as failed. No effect runs before its event is on disk. Reads still work. When the failure
//! is over, work continues without a restart; nothing is lost and nothing is done twice.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::bash;
use crate::support::client::{Client, Refusal, Session};
use crate::support::daemon::{TestDaemon, TestDaemonBuilder};
use crate::support::model_server::{Gate, Step};
use crate::support::wait::with_deadline;

/// Runs a system program; the error is its output.
fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output().map_err(|e| format!("{program}: {e}"))?;
    let said = || format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim());
    if output.status.success() { Ok(()) } else { Err(said()) }
}

/// A way to prevent the daemon from writing, with its reversal.
enum WriteFailure {
    /// A small disk, filled with a file.
    Full(Disk),
    /// A limit on the size of files, as `ulimit -f` sets it.
    FileSize,
    /// Immutable files, which root cannot change either.
    Immutable,
}

/// A separate disk below a folder, unmounted when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path, size: &str) -> Result<Self, String> {
        std::fs::create_dir_all(at).expect("made");
        let options = format!("size={size},mode=0700");
        run("mount", &["-t", "tmpfs", "-o", &options, "agentd-test", at.to_str().expect("a path")])?;
        Ok(Self(at.to_path_buf()))
    }

    fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).expect("made");
        for size in [65_536, 4_096, 512, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("filler")).expect("removed");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", self.0.to_str().expect("a path")]);
    }
}

impl WriteFailure {
    fn begin(&self, daemon: &TestDaemon) -> Result<(), String> {
        let pid = daemon.pid().to_string();
        match self {
            WriteFailure::Full(disk) => {
                disk.fill();
                Ok(())
            }
            WriteFailure::FileSize => run("prlimit", &["--pid", &pid, "--fsize=1:"]),
            WriteFailure::Immutable => self.files(daemon, "+i"),
        }
    }

    fn end(&self, daemon: &TestDaemon) {
        let pid = daemon.pid().to_string();
        match self {
            WriteFailure::Full(disk) => disk.free(),
            WriteFailure::FileSize => run("prlimit", &["--pid", &pid, "--fsize=unlimited:"]).expect("lifted"),
            WriteFailure::Immutable => self.files(daemon, "-i").expect("changed back"),
        }
    }

    fn files(&self, daemon: &TestDaemon, change: &str) -> Result<(), String> {
        let file = |name: &str| daemon.path("data/agentd").join(name).display().to_string();
        run("chattr", &[change, &file("agentd.db"), &file("agentd.db-wal")])
    }
}

/// No call needs permission, so that only the storage blocks work.
fn bypass_builder() -> TestDaemonBuilder {
    TestDaemon::builder().config("[permissions]\nallow_bypass = true\nallow_bypass_as_root = true")
}

async fn bypass_session(client: &Client, daemon: &TestDaemon) -> Session {
    client.create_with(daemon, json!({"mode": "bypass"})).await
}

pub(super) async fn status(client: &Client) -> String {
    client.call("daemon.status", json!({})).await["storage"].as_str().expect("a text").to_owned()
}

fn is_refused_for_storage(refusal: &Refusal) {
    let seen = (refusal.code, refusal.kind.as_str(), &refusal.data["retryable"]);
    assert_eq!(seen, (-32018, "storage_read_only", &json!(true)), "{refusal:?}");
    assert!(refusal.message.contains("free space"), "the error names the remedy: {}", refusal.message);
}

/// The failure begins in the middle of a message of a turn. A tool call follows.
async fn run_turn_through_failure(daemon: &mut TestDaemon, trouble: &WriteFailure) -> Result<(), String> {
    let alice = daemon.client("alice").await;
    let (busy, idle) = (bypass_session(&alice, daemon).await, alice.create(daemon).await);
    let mut seen = busy.follow().await;
    let gate = Gate::new();
    let words = ["One ", "two ", "three ", "four. "];
    let calls = Step::calls([bash("echo once >> log.txt")]);
    daemon.models.push(words.iter().fold(calls, |step, word| step.say(word)).hold_after(2, &gate));
    daemon.models.push(Step::text("Done."));
    busy.submit("count, then log").await;
    gate.wait_reached().await;
    seen.text_of("One two ".len()).await;

    trouble.begin(daemon)?;
    gate.open();
    // The affected session, an idle one and a new one all behave the same.
    let submit = json!({"input": "and you?", "idempotency_key": "k"});
    is_refused_for_storage(&idle.refused("submit", submit.clone()).await);
    is_refused_for_storage(&busy.refused("submit", json!({"input": "more"})).await);
    is_refused_for_storage(
        &alice.refused("session.create", json!({"cwd": daemon.workspace(), "idempotency_key": "n"})).await,
    );
    let told = status(&alice).await;
    assert!(told.contains("could not write the journal") && told.contains("free space"), "{told}");

    // Reads continue, for connected clients and for new ones.
    let bob = daemon.client("bob").await;
    let mut late = bob.join(&busy).follow().await;
    late.text_of("One two ".len()).await;
    assert_eq!(bob.call("session.list", json!({})).await["sessions"].as_array().map(Vec::len), Some(2));
    assert!(!busy.events().await.is_empty());
    assert_eq!(busy.view().await["state"], "running");
    assert_eq!(daemon.read("log.txt"), "", "a tool started without its intent");
    assert_eq!(daemon.models.requests().len(), 1);

    trouble.end(daemon);
    seen.turn_ends("success").await;
    late.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "once\n");
    assert_eq!(late.streamed(&late.events_of("message.started")[0]["item_id"]), "One two three four. ");
    daemon.models.push(Step::text("I am well."));
    idle.submit_with(submit.clone()).await;
    idle.follow().await.turn_ends("success").await;
    idle.submit_with(submit).await;
    assert_eq!(daemon.models.requests().len(), 3, "one key creates one turn");
    assert_eq!(status(&alice).await, "ok");
    daemon.models.assert_no_breach();

    // A kill now finds everything consistent.
    let (before, ids) = (busy.events().await, [&busy, &idle].map(|session| session.items()));
    let items: Vec<Vec<Value>> = futures_util::future::join_all(ids).await;
    daemon.crash_and_restart().await;
    let carol = daemon.client("carol").await;
    assert_eq!(carol.join(&busy).events().await[..before.len()], before);
    assert_eq!([carol.join(&busy).items().await, carol.join(&idle).items().await], items[..]);
    Ok(())
}

/// Runs the scenario, or prints that this machine cannot run it.
async fn run_or_skip(trouble: impl FnOnce(&TestDaemon) -> Result<WriteFailure, String>) {
    let mut daemon = bypass_builder().build().await;
    match trouble(&daemon) {
        Err(why) => base::skip_test!("{why}"),
        Ok(trouble) => {
            daemon.launch().await;
            if let Err(why) = run_turn_through_failure(&mut daemon, &trouble).await {
                base::skip_test!("{why}");
            }
        }
    }
}

#[tokio::test]
async fn running_turn_survives_full_disk() {
    run_or_skip(|daemon| Ok(WriteFailure::Full(Disk::mount(&daemon.path("data"), "3m")?))).await;
}

#[tokio::test]
async fn running_turn_survives_file_size_limit() {
    run_or_skip(|_| Ok(WriteFailure::FileSize)).await;
}

#[tokio::test]
async fn running_turn_survives_read_only_database_files() {
    run_or_skip(|_| Ok(WriteFailure::Immutable)).await;
}

/// If a verdict could not be written, the daemon reads the rules again before it judges the call again.
#[tokio::test]
async fn rule_added_while_commit_fails_is_applied() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::calls([bash("echo once >> log.txt")]).say("I log it.").hold(&gate));
    daemon.models.push(Step::text("It was not allowed."));
    session.submit("log it").await;
    gate.wait_reached().await;
    if let Err(why) = WriteFailure::FileSize.begin(&daemon) {
        return base::skip_test!("{why}");
    }
    gate.open();
    let fails = async {
        while status(&alice).await == "ok" {
            tokio::task::yield_now().await;
        }
    };
    with_deadline("the answer waits", String::new, fails).await;
    daemon.write(".agentd/config.toml", "[permissions]\ndeny = [\"Bash\"]\n");
    WriteFailure::FileSize.end(&daemon);
    let done = seen.wait_for("tool.completed").await;
    assert_eq!(done["status"], "denied", "{done}");
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn abort_kills_commands_when_commit_fails() {
    let daemon = bypass_builder().start().await;
    let session = bypass_session(&daemon.client("alice").await, &daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo begun; sleep 600")]));
    daemon.models.set_fallback(|_| Step::text("It was stopped."));
    session.submit("sleep").await;
    // Its output is read once the process is recorded; the disk fails only then.
    seen.wait_for("tool.progress").await;
    if let Err(why) = WriteFailure::FileSize.begin(&daemon) {
        return base::skip_test!("{why}");
    }
    is_refused_for_storage(&session.refused("abort", json!({})).await);
    daemon.tool_processes_reach(|alive| alive == 0).await;
    WriteFailure::FileSize.end(&daemon);
    let done = seen.wait_for("tool.completed").await;
    assert_eq!(done["status"], "cancelled", "{done}");
}

#[tokio::test]
async fn command_does_not_inherit_ignored_sigxfsz() {
    let daemon = bypass_builder().start().await;
    let session = bypass_session(&daemon.client("alice").await, &daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("grep SigIgn /proc/self/status")]));
    daemon.models.push(Step::text("Read."));
    session.submit("what is ignored?").await;
    let done = seen.wait_for("tool.completed").await;
    let text = done["output"].to_string();
    let mask = text.split("\\t").nth(1).and_then(|rest| u64::from_str_radix(rest.get(..16)?, 16).ok());
    let mask = mask.unwrap_or_else(|| panic!("no mask in {done}"));
    assert_eq!(mask & (1 << (nix::libc::SIGXFSZ - 1)), 0, "SIGXFSZ is inherited as ignored: {mask:x}");
}

/// The main scenario with one commit that succeeds but is reported as failed. A client whose request
/// fails repeats it.
async fn deny_one_commit(which: &str) -> bool {
    let daemon = bypass_builder().environment("AGENTD_COMMIT_LIES", which).start().await;
    let alice = daemon.client("alice").await;
    let patiently = async |method: &str, params: Value| loop {
        match alice.try_call(method, params.clone()).await {
            Ok(reply) => return reply,
            Err(refusal) => is_refused_for_storage(&refusal),
        }
    };
    daemon.models.set_fallback(|request| match request.body.to_string().contains("tool_result") {
        true => Step::text("It is logged."),
        false => Step::calls([bash("echo once >> log.txt")]).say("I log it."),
    });
    let create = json!({"cwd": daemon.workspace(), "mode": "bypass", "idempotency_key": "c"});
    let made = patiently("session.create", create).await;
    let id = made["session"]["session_id"].as_str().expect("an id").to_owned();
    let session = Session { client: alice.clone(), id };
    let submit = json!({"session_id": session.id, "input": "log it", "idempotency_key": "s"});
    let turn = patiently("session.submit", submit.clone()).await;
    let mut seen = session.follow().await;
    seen.turn_ends("success").await;
    assert_eq!(patiently("session.submit", submit).await, turn, "{which}");
    assert_eq!(daemon.read("log.txt"), "once\n", "{which}");
    let kinds: Vec<Value> = session.events().await.into_iter().map(|event| event["type"].clone()).collect();
    let times = |kind: &str| kinds.iter().filter(|known| **known == kind).count();
    let seen = ["session.created", "turn.started", "tool.started", "tool.completed", "turn.completed"];
    assert_eq!(seen.map(times), [1; 5], "{which}: {kinds:?}");
    assert_eq!(alice.call("session.list", json!({})).await["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(status(&alice).await, "ok");
    daemon.models.assert_no_breach();
    daemon.log().contains("a fault injected by a test")
}

#[tokio::test]
async fn commit_reported_as_failed_is_not_repeated() {
    let mut which = 1;
    while deny_one_commit(&which.to_string()).await {
        which += 1;
    }
    assert!(which > 6, "the job has only {} commits", which - 1);
}

#[tokio::test]
async fn unknown_commit_is_resolved_before_next_decision() {
    let mut which = 1;
    while deny_one_commit(&format!("{which}!")).await {
        which += 1;
    }
    assert!(which > 6, "the job has only {} commits", which - 1);
}
