//! No process of a command survives: not when the command is stopped, ends, or when the daemon is
//! killed and another one starts.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::json;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::process::Command;

use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;
use crate::support::wait::{POLL_INTERVAL, poll_until, with_deadline};

const BASH_ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

/// Processes with a marker on their command line, which no cleaning of an environment removes. Dropping
/// it kills the remaining ones.
struct MarkedProcesses(String);

impl MarkedProcesses {
    fn new(daemon: &TestDaemon) -> Self {
        // A unique number that `sleep` accepts: the folder's name is random.
        let name = daemon
            .path("")
            .to_string_lossy()
            .bytes()
            .fold(7_u64, |sum, b| sum.wrapping_mul(31) + u64::from(b));
        Self(format!("{}.{}", 7_000 + name % 999, name % 1_000_003))
    }

    fn alive(&self) -> Vec<Pid> {
        let entries = std::fs::read_dir("/proc").expect("a process list");
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let carries = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&self.0)
        };
        pids.filter(carries).map(Pid::from_raw).collect()
    }

    async fn wait_running(&self, daemon: &TestDaemon, wanted: usize) {
        let seen = || format!("alive: {:?}\n{}", self.alive(), daemon.log());
        poll_until("the processes of the command", seen, || (self.alive().len() >= wanted).then_some(()))
            .await;
    }
}

impl Drop for MarkedProcesses {
    fn drop(&mut self) {
        for pid in self.alive() {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }
}

/// Ways to escape. `MARK` is a unique number of seconds; the second value is the final number of
/// processes with it.
const ESCAPES: &[(&str, usize)] = &[
    // Its parents are dead, and it has its own process session.
    ("(setsid bash -c 'sleep MARK & sleep MARK' &); sleep MARK", 4),
    ("nohup sleep MARK >/dev/null 2>&1 & disown; sleep MARK", 2),
    ("trap '' TERM; sleep MARK & sleep MARK; sleep MARK", 3),
    // A stopped process.
    ("bash -c 'kill -STOP $$; sleep MARK' & sleep MARK", 2),
    // It has an empty environment, but is in the process session.
    ("env -i sleep MARK & env -i bash -c 'sleep MARK; true' & wait", 3),
    ("for i in $(seq 200); do sleep MARK & done; wait", 200),
    // Each process is replaced by another one before the daemon can find it.
    ("hop() { sleep 0.01; hop MARK & }; hop & hop & hop & hop & sleep MARK", 4),
];

/// Starts the command, and waits until all its processes run.
async fn start_processes(
    daemon: &TestDaemon,
    session: &Session,
    command: &str,
    count: usize,
) -> MarkedProcesses {
    let marked = MarkedProcesses::new(daemon);
    daemon.models.push(Step::calls([bash(&command.replace("MARK", &marked.0))]));
    session.submit("go").await;
    marked.wait_running(daemon, count).await;
    marked
}

#[tokio::test]
async fn abort_kills_detached_processes_of_command() {
    for (command, count) in ESCAPES {
        let daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        let marked = start_processes(&daemon, &session, command, *count).await;
        let reply = session.call("abort", json!({})).await;
        assert_eq!(marked.alive(), [], "after the reply nothing is left of {command:?}");
        assert_eq!(reply["survivors"], json!([]), "{command:?}");
        seen.turn_ends("aborted").await;
        let seen = || format!("{command:?}: {:?}", children(&daemon));
        poll_until("the dead to be taken in", seen, || children(&daemon).is_empty().then_some(())).await;
    }
}

#[tokio::test]
async fn orphaned_commands_are_killed_before_next_daemon_answers() {
    for (command, count) in ESCAPES {
        let mut daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
        let session = daemon.client("alice").await.create(&daemon).await;
        let marked = start_processes(&daemon, &session, command, *count).await;
        daemon.kill().await;
        assert!(!marked.alive().is_empty(), "{command:?} must survive its daemon for this test");
        daemon.launch().await;
        assert_eq!(marked.alive(), [], "nothing is left of {command:?}");
        assert_eq!(daemon.tool_processes(), [], "{command:?}");
        let status = daemon.client("bob").await.call("daemon.status", json!({})).await;
        assert_eq!(status["leftovers"], json!([]));
        wait_no_records(&daemon).await;
    }
}

/// The test of the sandbox starts processes with the mark of this daemon's instance.
#[tokio::test]
async fn restart_does_not_end_its_own_test_of_the_sandbox() {
    let mut daemon = TestDaemon::start().await;
    let levels = daemon.client("alice").await.sandbox().await;
    for _ in 0..8 {
        daemon.crash_and_restart().await;
        assert_eq!(daemon.client("alice").await.sandbox().await, levels);
    }
}

#[tokio::test]
async fn process_without_marker_or_parent_is_found_in_cgroup() {
    let mut daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    if !has_cgroups(&daemon).await {
        return;
    }
    let session = daemon.client("alice").await.create(&daemon).await;
    let escape =
        "(env -i setsid sleep MARK >/dev/null 2>&1 &); (env -i setsid sleep MARK &); sleep MARK; true";
    let marked = start_processes(&daemon, &session, escape, 4).await;
    let instance = instance(&daemon);
    session.call("abort", json!({})).await;
    assert_eq!(marked.alive(), []);
    let seen = || format!("{:?}", cgroups(&instance));
    poll_until("the cgroup to go", seen, || cgroups(&instance).is_empty().then_some(())).await;

    let marked = start_processes(&daemon, &session, escape, 4).await;
    assert_eq!(cgroups(&instance).len(), 1);
    daemon.kill().await;
    assert_eq!(marked.alive().len(), 4, "the processes survive their daemon");
    daemon.launch().await;
    assert_eq!(marked.alive(), []);
    // A dead process that its new parent has not reaped yet may hold it for a moment.
    daemon.crash_and_restart().await;
    assert_eq!(cgroups(&instance), [] as [std::path::PathBuf; 0]);
}

/// Whether this machine has cgroups; prints a note if not.
async fn has_cgroups(daemon: &TestDaemon) -> bool {
    let status = daemon.client("looker").await.call("daemon.status", json!({})).await;
    let confinement = status["confinement"].as_str().expect("a text");
    let has = confinement.starts_with("cgroup v2");
    if !has {
        base::skip_test!("there is no cgroup v2 that can be written: {confinement}");
    }
    has
}

/// The instance marker of this daemon's commands.
fn instance(daemon: &TestDaemon) -> String {
    let pid = daemon.tool_processes().first().copied().expect("a command runs");
    let environ = std::fs::read(format!("/proc/{pid}/environ")).expect("read");
    let text = String::from_utf8(environ).expect("text");
    text.split('\0').find_map(|entry| entry.strip_prefix("AGENTD_INSTANCE=")).expect("an instance").to_owned()
}

/// The cgroup folders of an instance.
fn cgroups(instance: &str) -> Vec<PathBuf> {
    fn collect(dir: &Path, name: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(name) {
                    found.push(entry.path());
                }
                collect(&entry.path(), name, found);
            }
        }
    }
    let mut found = Vec::new();
    collect(Path::new("/sys/fs/cgroup"), &format!("agentd-{instance}."), &mut found);
    found
}

#[tokio::test]
async fn start_spares_foreign_processes_with_reused_pid() {
    let mut daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    let other = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    let mine = daemon.client("alice").await.create(&daemon).await;
    let theirs = other.client("bob").await.create(&other).await;
    let marked = start_processes(&daemon, &mine, "sleep MARK; true", 2).await;
    let spared = start_processes(&other, &theirs, "(setsid sleep MARK &); sleep MARK; true", 3).await;
    daemon.kill().await;
    let mut bystander =
        Command::new("sleep").arg("1000").process_group(0).kill_on_drop(true).spawn().expect("it sleeps");
    let pid = i64::from(bystander.id().expect("it runs"));
    sqlx::query("update process set pid = ?")
        .bind(pid)
        .execute(&mut database(&daemon).await)
        .await
        .expect("changed");
    daemon.launch().await;
    assert_eq!(marked.alive(), [], "found by its environment");
    assert_eq!(spared.alive().len(), 3, "processes of another daemon");
    assert_eq!(bystander.try_wait().expect("wait"), None, "another process with the recorded number");
    wait_no_records(&daemon).await;
}

#[tokio::test]
async fn process_is_recorded_only_while_running() {
    let daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo $$; sleep 1000"), bash("echo $$; exit 3")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let started = seen.wait_for("tool.started").await;
    let said = seen.wait_for("tool.progress").await;
    let pid: i64 = said["text"].as_str().expect("a text").trim().parse().expect("an id");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let began: i64 = stat
        .rsplit_once(") ")
        .expect("a name")
        .1
        .split(' ')
        .nth(19)
        .expect("a field")
        .parse()
        .expect("a number");
    let call_id = started["call_id"].as_str().expect("an id").to_owned();
    assert_eq!(process_records(&daemon).await, [(call_id, pid, began, boot.trim().to_owned())]);
    session.call("abort", json!({"call_id": started["call_id"]})).await;
    seen.turn_ends("success").await;
    assert_eq!(process_records(&daemon).await, []);
}

#[tokio::test]
async fn daemon_started_by_command_spares_itself_and_parents() {
    let mut daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let marked = start_processes(&daemon, &session, "(setsid sleep MARK &); sleep MARK; true", 3).await;
    let instance = instance(&daemon);
    daemon.kill().await;
    // As if a command had started the next daemon: the daemon and its parent carry the marker.
    let command = daemon.command();
    let program = command.as_std().get_program().to_owned();
    let arguments: Vec<_> = command.as_std().get_args().map(ToOwned::to_owned).collect();
    let mut parent = daemon.command();
    parent.env("AGENTD_INSTANCE", &instance).env("AGENTD_CALL", "call_x");
    let mut nested = Command::new("/bin/bash");
    nested.env_clear();
    for (name, value) in parent.as_std().get_envs() {
        nested.env(name, value.expect("a value"));
    }
    nested
        .args(["-c", "\"$0\" \"$@\" & wait"])
        .arg(program)
        .args(arguments)
        .kill_on_drop(true)
        .process_group(0);
    let mut nested = nested.stderr(Stdio::null()).spawn().expect("it starts");
    let group = Pid::from_raw(i32::try_from(nested.id().expect("it runs")).expect("an id"));
    let client = daemon.client_at(&daemon.socket()).await;
    client.call("daemon.hello", json!({"name": "bob"})).await;
    assert_eq!(marked.alive(), []);
    assert_eq!(nested.try_wait().expect("waited"), None, "the parent is alive");
    killpg(group, Signal::SIGKILL).expect("it runs");
}

#[tokio::test]
async fn reparented_children_leave_no_zombie() {
    let daemon =
        TestDaemon::builder().config(&format!("{BASH_ALLOWED}\n[tools]\ncgroup = \"off\"")).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let many = "for i in $(seq 50); do (sleep 0.0$((i % 5)) &) ; done; sleep 0.1; \
                (env -i setsid sleep 0.5 >/dev/null 2>&1 &); echo done";
    daemon.models.push(Step::calls([bash(many), bash("exit 7")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    let codes: Vec<_> =
        seen.events_of("tool.completed").iter().map(|done| done["detail"]["exit_code"].clone()).collect();
    assert_eq!(codes, [json!(0), json!(7)], "no other code took the exit status of a shell");
    // One process that the daemon does not know lives a little longer than its call.
    let seen = || format!("{:?}", children(&daemon));
    poll_until("the last child to end and be taken in", seen, || children(&daemon).is_empty().then_some(()))
        .await;
}

/// Children of the daemon, including dead ones.
fn children(daemon: &TestDaemon) -> Vec<String> {
    let me = daemon.pid().to_string();
    let entries = std::fs::read_dir("/proc").expect("a process list");
    let stats = entries.flatten().filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.split(' ').nth(1) == Some(&me)))
        .collect()
}

async fn database(daemon: &TestDaemon) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(daemon.path("data/agentd/agentd.db"));
    SqliteConnection::connect_with(&options).await.expect("a database")
}

/// Waits until no process is recorded. A start deletes a record after the process ended and its session
/// has the result.
async fn wait_no_records(daemon: &TestDaemon) {
    let look = async {
        while !process_records(daemon).await.is_empty() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline("the list to be empty again", || daemon.log(), look).await;
}

/// The recorded processes: call, pid, start time, boot id.
async fn process_records(daemon: &TestDaemon) -> Vec<(String, i64, i64, String)> {
    sqlx::query_as("select call_id, pid, started, boot_id from process")
        .fetch_all(&mut database(daemon).await)
        .await
        .expect("the table is there")
}
