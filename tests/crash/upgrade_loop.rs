//! Upgrades in the middle of work. Each round replaces the program file, stops the daemon as planned and starts the new
//! program, by `agentctl daemon restart` or by SIGTERM and a start as a service manager does it. Meanwhile a turn streams,
//! a permission request waits, a command runs, and three jobs work. Nothing is lost, and nothing is done twice.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::client_log::{ClientLog, StreamCursor, is_delta};
use super::invariants::{self, Journals, appended_once};
use super::job_files::JobFiles;
use super::scenario::bash;
use crate::support::client::{Client, Session};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Request, Step};
use crate::support::wait::{POLL_INTERVAL, poll_until, with_deadline};

/// Commands run without a request, except `tee`.
const CONFIG: &str = "[permissions]\nallow = [\"Bash\"]\nask = [\"Bash(tee *)\"]\n[retry]\nbase_ms = 1\nresume_base_ms = 1\n\
                      [jobs]\nconcurrent = 4";
/// Sessions that clients follow.
const LANES: [&str; 3] = ["stream", "ask", "run"];

/// Counters of one run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub upgrades: u32,
    pub by_agentctl: u32,
    /// Announcements of the stop that followers received.
    pub announced: u64,
    /// Events that followers received, deltas among them.
    pub received: u64,
    pub events: u64,
    pub turns: u64,
    pub parked: u64,
    pub resumed: u64,
    pub calls: u64,
    pub cancelled_calls: u64,
    pub unknown_calls: u64,
    pub answered_requests: u64,
    pub jobs: u64,
    pub attempts: u64,
    /// Longest time from the request to stop until the new daemon answered.
    pub longest_gap: Duration,
    pub took: Duration,
}

/// Runs this number of upgrades.
pub async fn run(upgrades: u32) -> Figures {
    println!("upgrade loop: {upgrades} upgrades");
    let began = Instant::now();
    let mut folder = Folder::start().await;
    for round in 0..upgrades {
        folder.round(round).await;
    }
    let mut figures = folder.finish().await;
    figures.took = began.elapsed();
    figures
}

/// A client that keeps only its cursor. It reads until the daemon exits, and reconnects after its last event.
struct Follower {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    cursor: StreamCursor,
    events: Vec<Value>,
    /// Reasons of the announced stops.
    announced: Vec<Value>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Follower {
    fn start(socket: PathBuf, session: String, log: Arc<ClientLog>) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let all = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                if let Ok(stream) = UnixStream::connect(&socket).await {
                    // A connection that breaks is followed by another one.
                    let _ = follow_once(stream, &session, &all, &log).await;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        });
        Self { seen, task }
    }

    /// Waits until an event is wanted, and returns it. Fails if the follower received a wrong event.
    async fn find(&self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let seen = || {
            format!(
                "{:#?}",
                self.seen.lock().map(|seen| seen.events.iter().rev().take(8).cloned().collect::<Vec<_>>())
            )
        };
        poll_until(what, seen, || {
            assert!(!self.task.is_finished(), "a follower received a wrong event");
            self.seen.lock().expect("no panic").events.iter().rev().find(|event| is_wanted(event)).cloned()
        })
        .await
    }

    async fn turn_ends(&self, turn: &str) -> Value {
        let is_end = |event: &Value| event["type"] == "turn.completed" && event["turn_id"] == turn;
        let result = self.find("the end of the turn", is_end).await["result"].clone();
        assert_eq!(result["subtype"], "success", "{result}");
        result
    }
}

async fn follow_once(
    stream: UnixStream,
    session: &str,
    seen: &Mutex<Seen>,
    log: &ClientLog,
) -> std::io::Result<()> {
    let after = {
        let mut seen = seen.lock().expect("no panic");
        seen.cursor.start_connection();
        seen.cursor.cursor
    };
    let (read, mut write) = stream.into_split();
    let call = |id: u64, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n"
    };
    let asked = call(1, "session.subscribe", json!({"session_id": session, "after_seq": after}))
        + &call(2, "daemon.subscribe", json!({"about": ["daemon"]}));
    write.write_all(asked.as_bytes()).await?;
    let mut lines = BufReader::new(read).lines();
    while let Some(line) = lines.next_line().await? {
        // A line that the daemon's exit truncated is ignored.
        let Ok(mut message) = serde_json::from_str::<Value>(&line) else { break };
        let value = message["params"]["result"].take();
        match message["method"].as_str() {
            Some("session.event") => {
                log.record_event(session, &value);
                let mut seen = seen.lock().expect("no panic");
                seen.cursor.record_event(&value);
                seen.events.push(value);
            }
            Some("daemon.event") => {
                assert_eq!(value["kind"], "daemon.restarting", "{value}");
                seen.lock().expect("no panic").announced.push(value["reason"].clone());
            }
            _ if message.get("error").is_some() => break,
            _ => {}
        }
    }
    Ok(())
}

/// Ends the daemon that `agentctl` started, also if the test fails.
struct DaemonEnd(PathBuf);

impl DaemonEnd {
    fn pid(&self) -> Option<Pid> {
        let note = std::fs::read_to_string(&self.0).ok()?;
        note.lines().next()?.parse().ok().map(Pid::from_raw)
    }
}

impl Drop for DaemonEnd {
    fn drop(&mut self) {
        if let Some(pid) = self.pid()
            && comm(pid).as_deref() == Some("agentd")
        {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }
}

fn comm(pid: Pid) -> Option<String> {
    Some(std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned())
}

fn is_alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// What a prompt asks the model for: the text between `duty:` and `;`.
fn duty(request: &Request) -> String {
    let text = json!(request.messages()).to_string();
    let start = text.rfind("duty:").expect("a duty") + "duty:".len();
    text[start..].split(';').next().expect("a name").to_owned()
}

/// The text of an answer. It has three words, so that a stop can come in its middle.
fn answer(duty: &str) -> String {
    format!("begin:{duty} middle:{duty} end:{duty}")
}

/// The model's answer. A stream stops in its middle at the first request, so that an upgrade interrupts it.
fn work(request: &Request, interrupted: &Mutex<HashSet<String>>) -> Step {
    let duty = duty(request);
    if !request.tool_results().is_empty() {
        return Step::text(&answer(&duty));
    }
    match duty.trim_start_matches("job-").split('-').next().unwrap_or_default() {
        "ask" => Step::calls([bash(&format!("echo {duty} | tee -a log.txt"))]),
        "run" => Step::calls([bash(&format!(
            "echo {duty} >> log.txt; until [ -e go-{duty} ]; do sleep 0.02; done"
        ))]),
        "stream" if interrupted.lock().expect("no panic").insert(duty.clone()) => {
            Step::text(&answer(&duty)).hold_after(2, &Gate::new())
        }
        _ => Step::text(&answer(&duty)),
    }
}

/// One state folder with its daemon and its clients.
struct Folder {
    daemon: TestDaemon,
    daemon_end: DaemonEnd,
    programs: PathBuf,
    client_log: Arc<ClientLog>,
    lanes: BTreeMap<&'static str, (String, Follower)>,
    figures: Figures,
}

impl Folder {
    async fn start() -> Self {
        let mut daemon = TestDaemon::builder().config(CONFIG).build().await;
        let programs = daemon.path("bin");
        daemon.use_program(programs.join("agentd"));
        std::fs::create_dir(&programs).expect("a folder");
        std::fs::copy(env!("CARGO_BIN_EXE_agentctl"), programs.join("agentctl")).expect("copied");
        let mut folder = Self {
            daemon_end: DaemonEnd(daemon.path("data/agentd/agentd.lock")),
            client_log: Arc::default(),
            lanes: BTreeMap::new(),
            figures: Figures::default(),
            programs,
            daemon,
        };
        folder.replace_program();
        let interrupted = Mutex::default();
        folder.daemon.models.set_fallback(move |request| work(request, &interrupted));
        folder.daemon.launch().await;
        let client = folder.daemon.client("alice").await;
        for lane in LANES {
            let id = client.create(&folder.daemon).await.id;
            let follower =
                Follower::start(folder.daemon.socket(), id.clone(), Arc::clone(&folder.client_log));
            folder.lanes.insert(lane, (id, follower));
        }
        folder
    }

    /// Puts another copy in the place of the program, as dpkg does: the running daemon keeps its file.
    fn replace_program(&self) {
        let (new, program) = (self.programs.join("agentd.dpkg-new"), self.programs.join("agentd"));
        std::fs::copy(env!("CARGO_BIN_EXE_agentd"), &new).expect("copied");
        std::fs::rename(new, program).expect("renamed");
    }

    fn agentctl(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.programs.join("agentctl"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.daemon.path("home"))
            .env("XDG_RUNTIME_DIR", self.daemon.path("run"))
            .env("XDG_DATA_HOME", self.daemon.path("data"))
            .env("XDG_CONFIG_HOME", self.daemon.path("config"))
            .env("AGENTD_CONFIG", self.daemon.path("config.toml"))
            .args(args)
            .current_dir(self.daemon.workspace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    fn follower(&self, lane: &str) -> &Follower {
        &self.lanes[lane].1
    }

    async fn submit(&self, client: &Client, lane: &str, round: u32) -> String {
        let session = Session { client: client.clone(), id: self.lanes[lane].0.clone() };
        let reply = session.submit_with(json!({"input": format!("duty:{lane}-{round};")})).await;
        self.client_log.record_submit(&session.id, &reply);
        reply["turn_id"].as_str().expect("a turn").to_owned()
    }

    async fn create_job(&self, client: &Client, duty: &str, key: Option<&str>) -> Value {
        let mut job = json!({"prompt": format!("duty:{duty};"), "cwd": self.daemon.workspace()});
        if let Some(key) = key {
            job["concurrency"] = json!({"key": key, "limit": 1});
        }
        client.call("job.create", job).await["job"]["job_id"].clone()
    }

    fn lines(&self) -> String {
        self.daemon.read("log.txt")
    }

    async fn line_is_written(&self, line: &str) {
        let is_there = || self.lines().lines().any(|it| it == line).then_some(());
        poll_until(&format!("the line {line}"), || self.daemon.log(), is_there).await;
    }

    /// The daemon runs at the beginning and at the end.
    async fn round(&mut self, round: u32) {
        let client = self.daemon.client("alice").await;
        let mut turns = BTreeMap::new();
        for lane in LANES {
            turns.insert(lane, self.submit(&client, lane, round).await);
        }
        let (stream, run) = (format!("job-stream-{round}"), format!("job-run-{round}"));
        let key = format!("key {round}");
        let jobs = [
            (self.create_job(&client, &stream, Some(&key)).await, stream.clone()),
            (self.create_job(&client, &run, None).await, run.clone()),
            // It is queued until the first one has ended.
            (
                self.create_job(&client, &format!("job-last-{round}"), Some(&key)).await,
                format!("job-last-{round}"),
            ),
        ];
        let waited = self.agentctl(&["--no-start", "jobs", "wait", jobs[0].0.as_str().expect("an id")]);
        let asked = format!("duty:stream-cli-{round};");
        let spoken = self.agentctl(&["--no-start", "run", "-q", &asked]);
        let programs = [waited, spoken].map(|mut command| command.spawn().expect("agentctl starts"));

        // Everything is in the middle of its work.
        let middle = format!("middle:stream-{round}");
        let is_middle = |event: &Value| event["text"].as_str().is_some_and(|text| text.contains(&middle));
        self.follower("stream").find("the middle of the answer", is_middle).await;
        let is_request = |event: &Value| {
            event["type"] == "permission.requested" && event["turn_id"] == turns["ask"].as_str()
        };
        let request = self.follower("ask").find("the request", is_request).await["request_id"].clone();
        self.line_is_written(&format!("run-{round}")).await;
        self.line_is_written(&run).await;
        for wanted in [stream, format!("stream-cli-{round}")] {
            let is_asked =
                || self.daemon.models.requests().iter().any(|request| duty(request) == wanted).then_some(());
            poll_until(&wanted, || self.daemon.log(), is_asked).await;
        }
        let queued = client.call("job.get", json!({"job_id": jobs[2].0})).await;
        assert_eq!(queued["job"]["state"], "queued", "{queued}");

        self.replace_program();
        let start = Instant::now();
        let is_answered = self.upgrade(round, &client, &request).await;
        self.figures.longest_gap = self.figures.longest_gap.max(start.elapsed());

        let client = self.daemon.client("alice").await;
        self.answer_once(&client, &request, is_answered).await;
        for (lane, turn) in &turns {
            let result = self.follower(lane).turn_ends(turn).await;
            assert_eq!(result["text"], answer(&format!("{lane}-{round}")));
        }
        for (job_id, duty) in &jobs {
            let reply = client.call("job.wait", json!({"job_id": job_id, "timeout_ms": 20_000})).await;
            let job = &reply["job"];
            assert_eq!((&job["state"], &job["attempt"]), (&json!("succeeded"), &json!(1)), "{job}");
            assert_eq!(job["result"]["text"], answer(duty), "{job}");
        }
        for (program, duty) in
            programs.into_iter().zip([format!("job-stream-{round}"), format!("stream-cli-{round}")])
        {
            let output = self.ended(program).await;
            assert_eq!(output.0, format!("{}\n", answer(&duty)), "{}", output.1);
        }
        self.figures.upgrades += 1;
    }

    async fn ended(&self, program: Child) -> (String, String) {
        let output = with_deadline("agentctl to end", || self.daemon.log(), program.wait_with_output())
            .await
            .expect("ran");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    }

    /// Stops the daemon and starts the new program. In some rounds a user answers the request while it stops; returns
    /// whether the daemon acknowledged that.
    async fn upgrade(&mut self, round: u32, client: &Client, request: &Value) -> bool {
        if round.is_multiple_of(2) {
            self.figures.by_agentctl += 1;
            let restart = self.agentctl(&["daemon", "restart"]).spawn().expect("agentctl starts");
            self.let_commands_end(round).await;
            if self.daemon.has_process() {
                assert!(self.daemon.wait_exit().await.success(), "{}", self.daemon.log());
            }
            let (said, _) = self.ended(restart).await;
            assert!(
                said.contains("stopped; sessions are kept") && said.contains(" runs, process "),
                "{said}"
            );
            return false;
        }
        let pid = self.daemon_end.pid().expect("a daemon runs");
        kill(pid, Signal::SIGTERM).expect("it runs");
        let answered = client.call_or_none("session.approve", allow(request)).await;
        let is_answered = matches!(&answered, Some(Ok(_)));
        if let Some(Ok(reply)) = &answered {
            self.client_log.record_answer(&self.lanes["ask"].0, request, reply);
        }
        self.let_commands_end(round).await;
        match self.daemon.has_process() {
            true => assert!(self.daemon.wait_exit().await.success(), "{}", self.daemon.log()),
            false => {
                poll_until("the daemon to end", || self.daemon.log(), || (!is_alive(pid)).then_some(())).await
            }
        }
        self.daemon.launch().await;
        is_answered
    }

    /// Lets the running commands end once the stop was announced. In some rounds one runs until the daemon ends it.
    async fn let_commands_end(&self, round: u32) {
        for (_, follower) in self.lanes.values() {
            let count = || follower.seen.lock().expect("no panic").announced.len();
            let is_announced = || (count() > round as usize).then_some(());
            poll_until("the announcement of the stop", || self.daemon.log(), is_announced).await;
        }
        self.daemon.write(&format!("go-job-run-{round}"), "");
        if !round.is_multiple_of(3) {
            self.daemon.write(&format!("go-run-{round}"), "");
        }
    }

    /// Allows the request, unless that was acknowledged. A second answer is refused.
    async fn answer_once(&mut self, client: &Client, request: &Value, is_answered: bool) {
        let session = Session { client: client.clone(), id: self.lanes["ask"].0.clone() };
        if !is_answered {
            match client.try_call("session.approve", allow(request)).await {
                Ok(reply) => {
                    self.client_log.record_answer(&session.id, request, &reply);
                }
                // The daemon stored the answer, and could not acknowledge it before it stopped.
                Err(refusal) => assert_eq!(refusal.kind, "not_pending", "{refusal:?}"),
            }
        }
        let second = client.refused("session.approve", allow(request)).await;
        assert_eq!(second.kind, "not_pending", "{second:?}");
        self.figures.answered_requests += 1;
    }

    async fn finish(mut self) -> Figures {
        // The daemon of the last round may be one that agentctl started.
        let stopped = self.agentctl(&["daemon", "stop"]).spawn().expect("agentctl starts");
        self.ended(stopped).await;
        self.daemon.models.assert_no_breach();
        let database = self.daemon.path("data/agentd/agentd.db");
        let notes = self.client_log.notes().clone();
        let journals = invariants::check(&database, &notes).await;
        let files = JobFiles::read(&database).await;
        files.check(&journals);
        for record in files.jobs.values() {
            self.figures.jobs += 1;
            self.figures.attempts += record["attempts"].as_array().map_or(0, Vec::len) as u64;
        }
        let rounds = self.figures.upgrades;
        let done: Vec<String> = (0..rounds)
            .flat_map(|round| ["ask", "run", "job-run"].map(|kind| format!("{kind}-{round}")))
            .collect();
        appended_once(&self.lines(), done.iter().map(String::as_str));
        for (lane, (session, follower)) in &self.lanes {
            let seen = follower.seen.lock().expect("no panic");
            check_follower(lane, &seen, &journals[session], self.figures.upgrades);
            self.figures.received += seen.events.len() as u64;
            self.figures.announced += seen.announced.len() as u64;
        }
        count(&mut self.figures, &journals);
        self.figures
    }
}

/// A follower received each permanent event of the journal exactly once, and each planned stop was announced to it.
fn check_follower(lane: &str, seen: &Seen, journal: &BTreeMap<u64, Value>, upgrades: u32) {
    let is_kept = |(seq, event): &(&u64, &Value)| **seq <= seen.cursor.cursor && !is_delta(event);
    let kept: Vec<u64> = journal.iter().filter(is_kept).map(|(seq, _)| *seq).collect();
    assert_eq!(seen.cursor.kept, kept, "{lane}: the events that are never pruned");
    let ends = seen.events.iter().filter(|event| event["type"] == "turn.completed").count();
    assert_eq!(ends, upgrades as usize, "{lane}: ends of turns");
    let reason = |round: u32| if round.is_multiple_of(2) { "restart" } else { "signal" };
    let expected: Vec<&str> = (0..upgrades).map(reason).chain(["stop"]).collect();
    assert_eq!(seen.announced, expected, "{lane}: announced stops");
}

fn allow(request: &Value) -> Value {
    json!({"request_id": request, "decision": "allow"})
}

fn count(figures: &mut Figures, journals: &Journals) {
    for event in journals.values().flat_map(BTreeMap::values) {
        figures.events += 1;
        match event["type"].as_str() {
            Some("turn.completed") => figures.turns += 1,
            Some("turn.parked") => figures.parked += 1,
            Some("turn.resumed") => figures.resumed += 1,
            Some("tool.completed") => {
                figures.calls += 1;
                figures.cancelled_calls += u64::from(event["status"] == "cancelled");
                figures.unknown_calls += u64::from(event["status"] == "unknown");
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn upgrades_in_the_middle_of_work_lose_and_repeat_nothing() {
    let figures = run(3).await;
    println!("{figures:?}");
    assert_eq!(
        (figures.upgrades, figures.answered_requests, figures.unknown_calls),
        (3, 3, 0),
        "{figures:?}"
    );
    assert_eq!((figures.jobs, figures.attempts), (9, 9), "{figures:?}");
    assert!(figures.parked >= 9 && figures.resumed >= 9, "work was interrupted: {figures:?}");
}
