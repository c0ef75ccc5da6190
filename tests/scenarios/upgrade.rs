//! Restarts while users are at work: clients reconnect and miss nothing. With socket activation they
//! see no interruption.

use std::collections::{HashMap, HashSet};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::task::JoinHandle;

use super::agentctl::{command as agentctl, ctl, ended};
use super::lifecycle::activated;
use super::{is_delta, permanent};
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Request, Step};
use crate::support::wait::{POLL_INTERVAL, poll_until, with_deadline};

const RESTARTS: usize = 20;
const SESSIONS: usize = 3;

/// A client that stores only its cursor. It reads until the daemon exits, and reconnects with the seq
/// of its last event.
struct Reader {
    seen: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Reader {
    fn start(daemon: &TestDaemon, session: &str) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (socket, session, all) = (daemon.socket(), session.to_owned(), Arc::clone(&seen));
        let task = tokio::spawn(async move {
            loop {
                if let Ok(stream) = UnixStream::connect(&socket).await {
                    let _ = read_events(stream, &session, &all).await;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        });
        Self { seen, task }
    }

    fn events(&self) -> Vec<Value> {
        self.seen.lock().expect("no panic").clone()
    }

    async fn wait_events(&self, what: &str, is_wanted: impl Fn(&[Value]) -> bool) {
        let told = || format!("{:#?}", self.events().iter().rev().take(10).collect::<Vec<_>>());
        poll_until(what, told, || is_wanted(&self.seen.lock().expect("no panic")).then_some(())).await;
    }
}

async fn read_events(stream: UnixStream, session: &str, seen: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let after = seen.lock().expect("no panic").last().map_or(json!(0), |event| event["seq"].clone());
    let (read, mut write) = stream.into_split();
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "session.subscribe",
        "params": {"session_id": session, "after_seq": after}});
    write.write_all(format!("{ask}\n").as_bytes()).await?;
    let mut lines = BufReader::new(read).lines();
    while let Some(line) = lines.next_line().await? {
        // A line that the daemon's exit truncated is ignored.
        let Ok(mut message) = serde_json::from_str::<Value>(&line) else { break };
        if message["method"] == "session.event" {
            seen.lock().expect("no panic").push(message["params"]["result"].take());
        } else if message.get("error").is_some() {
            break;
        }
    }
    Ok(())
}

/// Checks a client's events: rising seqs, streamed text equal to the completed messages, and exactly
/// the journal's events among those that are never pruned.
fn check_view(name: &str, view: Vec<Value>, journal: &[Value]) {
    let mut last = 0;
    let mut streamed: HashMap<String, String> = HashMap::new();
    for event in &view {
        let seq = event["seq"].as_u64().expect("a number");
        assert!(seq > last, "{name}: {seq} after {last}");
        last = seq;
        let item = event["item_id"].as_str().unwrap_or_default().to_owned();
        if event["type"] == "message.text_delta" {
            streamed.entry(item).or_default().push_str(event["text"].as_str().expect("text"));
        } else if event["type"] == "message.completed" {
            let whole = event["item"]["text"].as_str().unwrap_or_default();
            let streamed = streamed.remove(&item).unwrap_or_default();
            assert!(whole.starts_with(&streamed), "{name}: {streamed:?} is not of {whole:?}");
        }
    }
    let journal: Vec<&Value> = journal.iter().filter(|e| e["seq"].as_u64() <= Some(last)).collect();
    let view = permanent(view);
    let differ = journal.iter().zip(&view).find(|(a, b)| **a != *b);
    assert!(
        journal.len() == view.len() && differ.is_none(),
        "{name}: {} of {}: {differ:?}",
        view.len(),
        journal.len()
    );
}

fn prompt_of(request: &Request) -> String {
    let message = request.messages().last().expect("a message");
    let text = message.to_string();
    let at = text.find("task ").expect("a task");
    text[at..].chars().take_while(|c| c.is_alphanumeric() || *c == ' ' || *c == '-').collect()
}

/// The answer to a task; the daemon is stopped in the middle of it.
fn answer(prompt: &str) -> String {
    let name = prompt.trim().replace(' ', "-");
    format!("begin:{name} middle:{name} end:{name}")
}

/// The model stops in the middle for ever at the first request of a task; it answers the second one.
fn interrupt_each_task_once(daemon: &TestDaemon) {
    let known = Mutex::new(HashSet::new());
    daemon.models.set_fallback(move |request| {
        let prompt = prompt_of(request);
        let step = Step::text(&answer(&prompt));
        if known.lock().expect("no panic").insert(prompt) { step.hold_after(2, &Gate::new()) } else { step }
    });
}

/// A program whose output the test reads as it arrives.
struct WatchedProgram {
    child: Child,
    out: Arc<Mutex<String>>,
    _reads: JoinHandle<()>,
}

impl WatchedProgram {
    fn start(daemon: &TestDaemon, args: &[&str]) -> Self {
        let mut child = agentctl(daemon, args).stdin(Stdio::piped()).spawn().expect("agentctl starts");
        let out = Arc::new(Mutex::new(String::new()));
        let (mut lines, all) = (child.stdout.take().expect("piped"), Arc::clone(&out));
        let reads = tokio::spawn(async move {
            let mut bytes = vec![0; 4096];
            while let Ok(read @ 1..) = lines.read(&mut bytes).await {
                // The expected text is ASCII; multi-byte characters around it may be split.
                all.lock().expect("no panic").push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        Self { child, out, _reads: reads }
    }

    fn text(&self) -> String {
        self.out.lock().expect("no panic").clone()
    }

    async fn says(&self, words: &str) {
        poll_until(words, || self.text(), || self.text().contains(words).then_some(())).await;
    }

    async fn ends(mut self) -> (Option<i32>, String) {
        let out = Arc::clone(&self.out);
        let said = || out.lock().expect("no panic").clone();
        let status = with_deadline("agentctl to end", said, self.child.wait()).await.expect("waited");
        with_deadline("its output to end", String::new, &mut self._reads).await.expect("read");
        (status.code(), self.text())
    }
}

#[tokio::test]
async fn twenty_restarts_during_streams_lose_and_duplicate_nothing() {
    let mut daemon = TestDaemon::start().await;
    interrupt_each_task_once(&daemon);
    let mut sessions = Vec::new();
    let alice = daemon.client("alice").await;
    for _ in 0..SESSIONS {
        sessions.push(alice.create(&daemon).await.id);
    }
    drop(alice);
    let readers: Vec<(usize, Reader)> =
        (0..SESSIONS * 2).map(|n| (n % SESSIONS, Reader::start(&daemon, &sessions[n % SESSIONS]))).collect();
    let logs = WatchedProgram::start(&daemon, &["--no-start", "logs", "-f", "--json", &sessions[0]]);
    let attached = WatchedProgram::start(&daemon, &["--no-start", "attach", &sessions[1]]);

    for round in 0..RESTARTS {
        let client = daemon.client("alice").await;
        let mut tasks = Vec::new();
        for (n, id) in sessions.iter().enumerate() {
            let task = format!("task {round}-{n}");
            Session { client: client.clone(), id: id.clone() }.submit(&task).await;
            tasks.push(answer(&task));
        }
        // One more process, which must find the daemon again in the middle of its turn.
        let is_run = round % 4 < 2;
        let task = format!("task {round}-run");
        let run = is_run.then(|| WatchedProgram::start(&daemon, &["--no-start", "run", &task]));
        for (n, reader) in &readers {
            let middle = tasks[*n].split_once(" end").expect("three words").0.to_owned();
            reader.wait_events("the middle of the answer", |seen| streamed(seen).contains(&middle)).await;
        }
        if run.is_some() {
            // Its output is a pipe, so it prints the answer when it is complete.
            let asked = || daemon.models.requests().iter().any(|request| prompt_of(request).trim() == task);
            poll_until("the request of the run", || daemon.log(), || asked().then_some(())).await;
        }
        // Alternate between an upgrade as documented, and one that is not recommended.
        match round % 2 {
            0 => assert!(daemon.stop().await.success(), "{}", daemon.log()),
            _ => daemon.kill().await,
        }
        drop(client);
        daemon.launch().await;
        for (n, reader) in &readers {
            let whole = tasks[*n].clone();
            reader
                .wait_events("the end of the turn", |seen| {
                    seen.iter()
                        .any(|e| e["type"] == "turn.completed" && e["result"]["text"] == whole.as_str())
                })
                .await;
        }
        if let Some(run) = run {
            let (code, said) = run.ends().await;
            assert_eq!(code, Some(0), "{said}");
            assert_eq!(said.matches(&format!("end:task-{round}-run")).count(), 1, "{said}");
            assert!(said.contains(&answer(&task)), "{said}");
        }
    }

    let client = daemon.client("alice").await;
    let mut journals = Vec::new();
    for id in &sessions {
        journals.push(permanent(Session { client: client.clone(), id: id.clone() }.events().await));
    }
    for (number, (n, reader)) in readers.iter().enumerate() {
        let ends = reader.events().iter().filter(|e| e["type"] == "turn.completed").count();
        assert_eq!(ends, RESTARTS);
        check_view(&format!("reader {number}"), reader.events(), &journals[*n]);
    }
    let last = format!("\"text\":\"{}\"", answer(&format!("task {}-0", RESTARTS - 1)));
    logs.says(&last).await;
    let lines = logs.text();
    let lines: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(lines.iter().any(is_delta));
    check_view("logs -f", lines, &journals[0]);
    for round in 0..RESTARTS {
        attached.says(&format!("end:task-{round}-1")).await;
        let said = attached.text();
        assert_eq!(said.matches(&format!("end:task-{round}-1")).count(), 1, "{said}");
    }
    daemon.models.assert_no_breach();
}

fn streamed(seen: &[Value]) -> String {
    seen.iter().filter(|e| e["type"] == "message.text_delta").filter_map(|e| e["text"].as_str()).collect()
}

#[tokio::test]
async fn passed_socket_loses_no_connection_during_restart() {
    let daemon = TestDaemon::builder().build().await;
    let socket = daemon.path("handed.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
    let mut pids = HashSet::new();
    for round in 0..RESTARTS {
        // While no daemon runs, this connection waits in the queue of the socket.
        let early = daemon.client_at(&socket).await;
        let asked = early.send("daemon.status", json!({})).await;
        let handed = std::os::fd::OwnedFd::from(listener.try_clone().expect("another descriptor"));
        let log = std::fs::File::options().create(true).append(true).open(daemon.path("log")).expect("a log");
        let mut process = activated(&daemon, 1, handed).stderr(log).spawn().expect("bash starts");
        let status = early.reply(asked).await.expect("answered");
        assert!(pids.insert(status["pid"].to_string()), "each daemon answers once");
        // This connection opens while the daemon stops: either this daemon or the next one answers.
        let stopping = daemon.client_at(&socket).await;
        stopping.call("daemon.shutdown", json!({})).await;
        let ended = with_deadline("the daemon to end", || daemon.log(), process.wait()).await.expect("exit");
        assert!(ended.success(), "round {round}: {}", daemon.log());
        assert!(socket.exists(), "its file is not the daemon's");
    }
    assert_eq!(pids.len(), RESTARTS);
}

#[tokio::test]
async fn stopped_daemon_stays_stopped_and_crashed_one_restarts() {
    let mut daemon = TestDaemon::start().await;
    interrupt_each_task_once(&daemon);
    let run = WatchedProgram::start(&daemon, &["run", "task of the living"]);
    daemon.models.wait_for_requests(1).await;
    // After a kill, an attached client starts another daemon, and the turn continues there.
    daemon.kill().await;
    let (code, said) = run.ends().await;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("end:").count(), 1, "{said}");
    let status = ctl(&daemon, &["daemon", "status", "--json"]).await.json();

    // After a regular stop, attached clients do not start the daemon again.
    let run = agentctl(&daemon, &["run", "task of the stopped"]).spawn().expect("agentctl starts");
    daemon.models.wait_for_requests(3).await;
    ctl(&daemon, &["daemon", "stop"]).await.stdout();
    let said = ended(&daemon, run).await;
    assert_eq!(said.code, 69, "{said:?}");
    assert!(!daemon.socket().exists(), "no client starts the daemon again");
    assert!(said.err.contains("agentctl daemon start"), "{said:?}");

    // When a client starts the daemon, the turn continues.
    let started = ctl(&daemon, &["daemon", "start"]).await.stdout();
    assert!(!started.contains(&status["pid"].to_string()));
    daemon.models.wait_for_requests(4).await;
    ctl(&daemon, &["daemon", "stop", "--now"]).await.stdout();
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn daemon_start_stop_restart_and_reload_commands_work() {
    let daemon = TestDaemon::builder().build().await;
    let status = ctl(&daemon, &["daemon", "status"]).await;
    assert!(status.code == 69 && status.err.contains("agentctl daemon start"), "{status:?}");
    assert!(ctl(&daemon, &["daemon", "stop"]).await.err.contains("no daemon was running"));
    let reloaded = ctl(&daemon, &["daemon", "reload"]).await;
    assert!(reloaded.code == 0 && reloaded.err.contains("no daemon runs"), "{reloaded:?}");
    assert!(!daemon.socket().exists(), "these commands start no daemon");

    let first = ctl(&daemon, &["daemon", "start"]).await.stdout();
    assert_eq!(ctl(&daemon, &["daemon", "start"]).await.stdout(), first, "a second start changes nothing");
    let said = ctl(&daemon, &["daemon", "restart"]).await.stdout();
    assert!(said.contains("stopped") && said.contains("runs") && !said.contains(first.trim()), "{said}");
    assert!(ctl(&daemon, &["daemon", "reload"]).await.stdout().contains("read again"));
    assert!(ctl(&daemon, &["daemon", "logs"]).await.stdout().contains("reloaded the configuration"));
    assert_eq!(ctl(&daemon, &["daemon", "stop"]).await.stdout(), "stopped; sessions are kept\n");
    // If no daemon runs, a restart is a start.
    assert!(ctl(&daemon, &["daemon", "restart", "--now"]).await.stdout().contains("runs"));
    ctl(&daemon, &["daemon", "stop", "--now"]).await.stdout();
}
