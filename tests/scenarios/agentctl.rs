//! `agentctl` in scripts, without a terminal: its output and its exit codes.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{poll_until, with_deadline};

/// Exit code and output of an `agentctl` run.
#[derive(Debug)]
pub(super) struct CliOutput {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl CliOutput {
    fn from_output(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let code = output.status.code().expect("no signal ended it");
        Self { code, out: text(output.stdout), err: text(output.stderr) }
    }

    /// Asserts success and returns the standard output.
    pub(super) fn stdout(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    pub(super) fn json(self) -> Value {
        let out = self.stdout();
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("not JSON: {out:?}"))
    }
}

/// `agentctl` in the test's workspace, with only the test's environment.
pub(super) fn command(daemon: &TestDaemon, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentctl"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", daemon.path("home"))
        .env("XDG_RUNTIME_DIR", daemon.path("run"))
        .env("XDG_DATA_HOME", daemon.path("data"))
        .env("XDG_CONFIG_HOME", daemon.path("config"))
        .env("AGENTD_CONFIG", daemon.path("config.toml"))
        .args(args)
        .current_dir(daemon.workspace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Waits until the process exits.
pub(super) async fn ended(daemon: &TestDaemon, child: Child) -> CliOutput {
    CliOutput::from_output(
        with_deadline("agentctl to end", || daemon.log(), child.wait_with_output()).await.expect("it ran"),
    )
}

/// Runs `agentctl` until it exits.
pub(super) async fn ctl(daemon: &TestDaemon, args: &[&str]) -> CliOutput {
    ended(daemon, command(daemon, args).spawn().expect("agentctl starts")).await
}

/// Polls `ps` until the session has this state.
pub(super) async fn ps_shows(daemon: &TestDaemon, id: &str, state: &str) -> Value {
    let look = async {
        loop {
            let listed = ctl(daemon, &["ps", "--json"]).await.json();
            let listed = listed.as_array().expect("a list");
            let found =
                listed.iter().find(|session| session["session_id"] == id && session["state"] == state);
            if let Some(found) = found {
                return found.clone();
            }
        }
    };
    with_deadline(&format!("ps to show {state}"), || daemon.log(), look).await
}

/// Stops the daemon that `agentctl` started, also when the test fails.
pub(super) struct DaemonStopper<'a>(pub(super) &'a TestDaemon);

impl Drop for DaemonStopper<'_> {
    fn drop(&mut self) {
        let stop = command(self.0, &["daemon", "stop", "--now"]);
        let mut stop = stop.into_std();
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

#[tokio::test]
async fn run_prints_completed_messages_to_pipe_and_last_one_with_quiet() {
    let daemon = TestDaemon::start().await;
    for (args, expected) in
        [(&["run", "count"][..], "I look.\none two three\n"), (&["run", "-q", "count"], "one two three\n")]
    {
        daemon.models.push(Step::calls([("LS", json!({"path": "."}))]).say("I look."));
        daemon.models.push(Step::text("one two three"));
        let said = ctl(&daemon, args).await;
        assert_eq!((said.code, said.out.as_str()), (0, expected), "{said:?}");
        assert_eq!(said.err.contains("session "), args.len() == 2, "{said:?}");
    }
    // A program that wants the parts as they come reads the events.
    let gate = Gate::new();
    daemon.models.push(Step::text("one two three").hold_after(2, &gate));
    let mut child =
        command(&daemon, &["run", "-o", "stream-json", "count"]).spawn().expect("agentctl starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let deltas = async {
        while let Some(line) = lines.next_line().await.expect("a line") {
            if line.contains("\"message.text_delta\"") {
                return;
            }
        }
        panic!("no delta");
    };
    with_deadline("the first words", || daemon.log(), deltas).await;
    gate.open();
    with_deadline("the end", || daemon.log(), async {
        while lines.next_line().await.expect("a line").is_some() {}
    })
    .await;
    assert_eq!(ended(&daemon, child).await.code, 0);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn run_reads_task_from_standard_input() {
    let daemon = TestDaemon::start().await;
    daemon.models.push(Step::text("Done."));
    let mut child = command(&daemon, &["run", "-"]).stdin(Stdio::piped()).spawn().expect("agentctl starts");
    child.stdin.take().expect("piped").write_all(b"a long\ntask").await.expect("read");
    assert_eq!(ended(&daemon, child).await.stdout(), "Done.\n");
    let asked = daemon.models.requests()[0].body.to_string();
    assert!(asked.contains("a long\\ntask"), "{asked}");
}

#[tokio::test]
async fn run_output_json_prints_result_or_every_event() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("one two"));
    let result = ctl(&daemon, &["run", "--output", "json", "--title", "t", "go"]).await.json();
    assert_eq!((&result["subtype"], &result["text"]), (&json!("success"), &json!("one two")));
    assert!(result["session_id"].as_str().is_some_and(|id| id.starts_with("ses_")), "{result}");
    assert!(result["turn_id"].as_str().is_some_and(|id| id.starts_with("turn_")), "{result}");

    let lines = ctl(&daemon, &["run", "--output", "stream-json", "go"]).await.stdout();
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("one event per line")).collect();
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().expect("a number")).collect();
    assert!(seqs.is_sorted(), "{seqs:?}");
    assert_eq!(events[0]["type"], "session.created");
    let last = events.last().expect("events");
    assert_eq!((&last["type"], &last["result"]["text"]), (&json!("turn.completed"), &json!("one two")));
}

#[tokio::test]
async fn run_with_unreachable_model_server_exits_2() {
    // This port was free a moment ago, so no server listens on it.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let nowhere = format!("http://{}", free.local_addr().expect("an address"));
    drop(free);
    let daemon =
        TestDaemon::builder().config("[retry]\nattempts = 1").model_server_at(&nowhere).start().await;
    let said = ctl(&daemon, &["run", "hello"]).await;
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{said:?}");
    assert!(said.err.contains(&nowhere["http://".len()..]), "{said:?}");
    let said = ctl(&daemon, &["run", "--output", "json", "hello"]).await;
    let result: Value = serde_json::from_str(&said.out).expect("a result");
    assert_eq!((said.code, &result["subtype"]), (2, &json!("llm_error")));
}

#[tokio::test]
async fn run_without_terminal_denies_request_and_exits_1() {
    let daemon = TestDaemon::start().await;
    daemon.models.push(Step::calls([bash("touch never")]));
    daemon.models.push(Step::text("As you like."));
    let said = ctl(&daemon, &["run", "make a file"]).await;
    assert_eq!((said.code, said.out.as_str()), (1, "As you like.\n"), "{said:?}");
    assert!(said.err.contains("touch never") && said.err.contains("no terminal to ask"), "{said:?}");
    assert!(!daemon.workspace().join("never").exists());
    let results = daemon.models.requests()[1].tool_results();
    let told = &results[0].1;
    assert!(told.contains("no user at a terminal to ask") && told.contains("No user has refused"), "{told}");
    let audit = ctl(&daemon, &["audit"]).await;
    assert!(audit.stdout().contains("no user could be asked"), "the audit log says the same");
}

#[tokio::test]
async fn run_without_terminal_applies_unattended_policy() {
    let policy = |on_timeout: &str| format!("[permissions.unattended]\non_timeout = \"{on_timeout}\"");

    let daemon = TestDaemon::builder().config(&policy("allow_read_only")).start().await;
    let outside = daemon.path("outside.txt");
    std::fs::write(&outside, "far away").expect("written");
    daemon.models.push(Step::calls([("Read", json!({"file_path": outside}))]));
    daemon.models.push(Step::text("Read."));
    let said = ctl(&daemon, &["run", "read"]).await;
    assert_eq!((said.code, said.out.as_str()), (0, "Read.\n"), "{said:?}");
    assert!(daemon.models.requests()[1].tool_results()[0].1.contains("far away"));

    let daemon = TestDaemon::builder().config(&policy("fail")).start().await;
    daemon.models.push(Step::calls([bash("touch never")]));
    let said = ctl(&daemon, &["run", "--output", "json", "make a file"]).await;
    let result: Value = serde_json::from_str(&said.out).expect("a result");
    assert_eq!((said.code, &result["subtype"]), (1, &json!("permission_denied")), "{said:?}");

    let daemon = TestDaemon::builder().config(&policy("pause")).start().await;
    daemon.models.push(Step::calls([bash("touch late")]));
    daemon.models.push(Step::text("Made."));
    let mut child = command(&daemon, &["run", "make a file"]).spawn().expect("agentctl starts");
    let mut side = BufReader::new(child.stderr.take().expect("piped")).lines();
    let waits = async {
        loop {
            let line = side.next_line().await.expect("read").expect("another line");
            if line.contains("agentctl approvals") {
                return;
            }
        }
    };
    with_deadline("the command to wait", || daemon.log(), waits).await;
    let waiting = daemon.client("alice").await.call("permission.list", json!({})).await;
    let request = waiting["requests"][0]["request_id"].as_str().expect("an id").to_owned();
    ctl(&daemon, &["approve", &request]).await.stdout();
    let rest = tokio::spawn(async move { while let Ok(Some(_)) = side.next_line().await {} });
    assert_eq!(ended(&daemon, child).await.stdout(), "Made.\n");
    rest.abort();
    assert!(daemon.workspace().join("late").exists());
}

#[tokio::test]
async fn run_with_approval_mode_needs_no_terminal() {
    let daemon = TestDaemon::start().await;
    let file = daemon.workspace().join("new.txt");
    daemon.models.push(Step::calls([("Write", json!({"file_path": file, "content": "new\n"}))]));
    daemon.models.push(Step::text("Written."));
    let said = ctl(&daemon, &["run", "-a", "accept_edits", "write"]).await;
    assert_eq!(said.stdout(), "Written.\n");
    assert_eq!(daemon.read("new.txt"), "new\n");
}

#[tokio::test]
async fn run_with_exhausted_budget_exits_5() {
    let daemon = TestDaemon::start().await;
    daemon.write("a.txt", "alpha\n");
    let file = daemon.workspace().join("a.txt");
    daemon.models.set_fallback(move |_| Step::calls([("Read", json!({"file_path": file}))]));
    let said = ctl(&daemon, &["run", "--max-turns", "1", "read on"]).await;
    assert_eq!(said.code, 5, "{said:?}");
    assert_eq!(daemon.models.requests().len(), 1);
    assert!(!said.err.trim().is_empty(), "it says why");
}

#[tokio::test]
async fn no_start_without_daemon_exits_69() {
    let daemon = TestDaemon::builder().build().await;
    for args in [&["--no-start", "run", "hi"][..], &["ps", "--no-start"], &["daemon", "status"]] {
        let said = ctl(&daemon, args).await;
        assert_eq!((said.code, said.out.as_str()), (69, ""), "{args:?}: {said:?}");
        assert!(said.err.contains("agentctl daemon start"), "{args:?}: {said:?}");
    }
    assert!(!daemon.socket().exists());
}

#[tokio::test]
async fn agentctl_inside_tool_never_starts_daemon() {
    let daemon = TestDaemon::builder().build().await;
    let mut within = command(&daemon, &["approve", "perm_x"]);
    within.env("AGENTD_CALL", "call_x").env("AGENTD_SOCKET", daemon.socket());
    let said = ended(&daemon, within.spawn().expect("agentctl starts")).await;
    assert!(said.code == 1 && said.err.contains("may not answer"), "{said:?}");
    assert!(!daemon.socket().exists() && !daemon.path("data/agentd/agentd.db").exists());
}

#[tokio::test]
async fn run_starts_daemon_and_session_survives_its_stop() {
    let daemon = TestDaemon::builder().build().await;
    let _stop = DaemonStopper(&daemon);
    daemon.models.set_fallback(|_| Step::text("Hello."));
    let result = ctl(&daemon, &["run", "--output", "json", "hello"]).await.json();
    let status = ctl(&daemon, &["daemon", "status", "--json"]).await.json();
    assert_eq!(status["main_model"], "scripted/model");
    assert_eq!(ctl(&daemon, &["run", "hello"]).await.stdout(), "Hello.\n");
    let again = ctl(&daemon, &["daemon", "status", "--json"]).await.json();
    assert_eq!(again["pid"], status["pid"], "the same daemon serves both calls");

    assert!(ctl(&daemon, &["daemon", "stop"]).await.stdout().contains("stopped"));
    assert!(UnixStream::connect(daemon.socket()).await.is_err(), "the socket is closed");
    let said = ctl(&daemon, &["daemon", "stop"]).await;
    assert!(said.err.contains("no daemon was running"), "{said:?}");
    said.stdout();

    let listed = ctl(&daemon, &["ps", "--json"]).await.json();
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 2, "a new daemon lists both sessions");
    assert!(listed.iter().any(|session| session["session_id"] == result["session_id"]));
    assert_ne!(ctl(&daemon, &["daemon", "status", "--json"]).await.json()["pid"], status["pid"]);
    ctl(&daemon, &["daemon", "stop", "--now"]).await.stdout();
}

#[tokio::test]
async fn following_client_reaps_daemons_that_it_started() {
    let daemon = TestDaemon::builder().build().await;
    let _stop = DaemonStopper(&daemon);
    daemon.models.set_fallback(|_| Step::text("Hello."));
    let done = ctl(&daemon, &["run", "--output", "json", "hello"]).await.json();
    let id = done["session_id"].as_str().expect("an id").to_owned();
    ctl(&daemon, &["daemon", "stop"]).await.stdout();

    let mut follower = command(&daemon, &["logs", "-f", &id]).spawn().expect("agentctl starts");
    let mut out = follower.stdout.take().expect("piped");
    let mut first = [0; 1];
    with_deadline("its first word", || daemon.log(), out.read_exact(&mut first)).await.expect("words");
    let drain = tokio::spawn(async move { tokio::io::copy(&mut out, &mut tokio::io::sink()).await });
    let process = async || ctl(&daemon, &["--no-start", "daemon", "status", "--json"]).await;
    let first = process().await.json()["pid"].as_i64().expect("a pid");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(first as i32), nix::sys::signal::SIGKILL)
        .expect("killed");
    // `agentctl` starts another daemon and continues to follow.
    let again = async {
        loop {
            let said = process().await;
            if said.code == 0 && said.json()["pid"] != first {
                return;
            }
        }
    };
    with_deadline("another daemon", || daemon.log(), again).await;
    // The first daemon's exit status was collected, so its pid is free.
    let of_first = format!("/proc/{first}");
    let is_gone = || (!std::path::Path::new(&of_first).exists()).then_some(());
    poll_until("the first daemon to be gone", || daemon.log(), is_gone).await;
    follower.kill().await.expect("killed");
    drain.await.expect("drained").expect("read");
}

#[tokio::test]
async fn background_session_is_controlled_by_other_agentctl_calls() {
    let daemon = TestDaemon::start().await;
    daemon.models.push(Step::calls([bash("touch made")]));
    daemon.models.push(Step::text("It is made."));
    let id = ctl(&daemon, &["run", "--background", "make it"]).await.stdout();
    let id = id.trim_end();
    assert!(id.starts_with("ses_") && !id.contains(char::is_whitespace), "{id:?}");

    assert_eq!(ps_shows(&daemon, id, "requires_action").await["requires"], "permission");
    assert!(ctl(&daemon, &["ps"]).await.stdout().contains("waits: Bash"));
    let waiting = ctl(&daemon, &["approvals", "--json"]).await.json();
    let waiting = waiting.as_array().expect("a list");
    assert_eq!((waiting.len(), &waiting[0]["session_id"]), (1, &json!(id)));
    assert_eq!(waiting[0]["input"]["command"], "touch made");
    let request = waiting[0]["request_id"].as_str().expect("an id");
    assert!(ctl(&daemon, &["approvals"]).await.stdout().contains(request));
    let whole = ctl(&daemon, &["approvals", &request[..request.len() - 4]]).await.stdout();
    assert!(
        whole.starts_with("1.1  ") && whole.contains(request) && whole.contains("▌ May Bash do this?"),
        "{whole}"
    );
    assert!(
        whole.contains("    $ touch made\n") && whole.contains("could be granted: Bash(touch made)"),
        "{whole}"
    );
    let said = ctl(&daemon, &["rm", id]).await;
    assert!(said.code == 4 && said.err.contains("is working"), "{said:?}");

    let allowed = ctl(&daemon, &["approve", &request["perm_".len()..request.len() - 4]]).await.stdout();
    assert_eq!(allowed, format!("allowed {request}\n"));
    ps_shows(&daemon, id, "idle").await;
    assert!(daemon.workspace().join("made").exists());
    let said = ctl(&daemon, &["approve", request]).await;
    assert!(said.code == 4 && !said.err.is_empty(), "an answer counts once: {said:?}");

    let logs = ctl(&daemon, &["logs"]).await;
    for word in ["make it", "touch made", "It is made."] {
        assert!(format!("{}{}", logs.out, logs.err).contains(word), "{word:?} is missing in:\n{logs:?}");
    }
    assert!(!logs.out.contains("permission.requested"), "{logs:?}");
    let logs = ctl(&daemon, &["logs", "--events", id]).await.stdout();
    for word in ["make it", "permission.requested", "touch made", "tool.completed", "It is made."] {
        assert!(logs.contains(word), "{word:?} is missing in:\n{logs}");
    }
    assert_eq!(ctl(&daemon, &["events", id]).await.stdout(), logs);
    assert_eq!(ctl(&daemon, &["result", "1"]).await.stdout(), "It is made.\n");
    let lines = ctl(&daemon, &["logs", "--json", id]).await.stdout();
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("one event per line")).collect();
    assert_eq!(events[0]["type"], "session.created");
    assert!(events.iter().any(|event| event["type"] == "permission.resolved"));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn submit_abort_kill_and_rm_work_from_agentctl() {
    let daemon = TestDaemon::start().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("Hello."));
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    let id = ctl(&daemon, &["run", "--output", "json", "--title", "mine", "hello"]).await.json();
    let id = id["session_id"].as_str().expect("an id").to_owned();
    let turn = ctl(&daemon, &["submit", "mine", "count"]).await.stdout();
    assert!(turn.starts_with("turn_"), "{turn:?}");
    gate.wait_reached().await;
    assert!(ctl(&daemon, &["abort", &id]).await.stdout().contains(turn.trim_end()));
    ps_shows(&daemon, &id, "idle").await;
    assert!(ctl(&daemon, &["abort", &id]).await.err.contains("nothing was running"));

    assert_eq!(ctl(&daemon, &["kill", &id]).await.stdout(), format!("{id}\n"));
    assert_eq!(ctl(&daemon, &["ps", "--json"]).await.json(), json!([]));
    let all = ctl(&daemon, &["ps", "-a", "--json"]).await.json();
    assert_eq!((&all[0]["session_id"], &all[0]["state"]), (&json!(id), &json!("ended")));
    assert!(ctl(&daemon, &["logs", &id]).await.stdout().contains("Hello."), "the history is kept");
    let said = ctl(&daemon, &["submit", &id, "more"]).await;
    assert!(said.code == 4 && said.err.contains("takes no more input"), "{said:?}");

    assert_eq!(ctl(&daemon, &["rm", &id]).await.stdout(), format!("{id}\n"));
    assert_eq!(ctl(&daemon, &["ps", "-a", "--json"]).await.json(), json!([]));
    assert_eq!(ctl(&daemon, &["logs", &id]).await.code, 64);
}

#[tokio::test]
async fn wrong_arguments_exit_64_without_starting_daemon() {
    let daemon = TestDaemon::builder().build().await;
    for args in [
        &[][..],
        &["nonsense"],
        &["run", "--output", "xml", "go"],
        &["run", "--approval-mode", "anything", "go"],
        &["run", "--max-usd", "much", "go"],
        &["run", "-w", "/nonexistent", "go"],
        &["run", " "],
        &["jobs", "add"],
        &["logs", "x", "--since", "yesterday"],
        &["kill"],
        &["kill", "x", "--all"],
        &["ps", "--format", "{{.Title"],
        &["submit", "x", ""],
        &["abort", "x", "--call", "y"],
    ] {
        let said = ctl(&daemon, args).await;
        assert_eq!((said.code, said.out.as_str()), (64, ""), "{args:?}: {said:?}");
        assert!(!said.err.trim().is_empty(), "{args:?} is refused without an error text");
    }
    for args in [["--help"], ["--version"]] {
        let said = ctl(&daemon, &args).await;
        assert!(said.err.is_empty() && said.stdout().contains("agentctl"), "{args:?}");
    }
    assert!(!daemon.socket().exists() && !daemon.path("data").exists());
}

#[tokio::test]
async fn unknown_provider_and_image_exit_64_in_words_of_command_line() {
    let daemon = TestDaemon::start().await;
    for (args, words) in [
        (&["run", "-m", "nowhere/model", "go"][..], "--model: "),
        (&["run", "--fallback-model", "nowhere/model", "go"], "--fallback-model: "),
        (&["run", "-a", "bypass", "go"], "--approval-mode: "),
        (&["run", "--image", "missing.png", "go"], "--image missing.png"),
        (&["run", "--agent", "no-such-agent", "go"], "--agent: "),
        (&["run", "--tools", "NoSuchTool", "go"], "--tools: "),
    ] {
        let said = ctl(&daemon, args).await;
        assert!(said.code == 64 && said.err.contains(words), "{args:?}: {said:?}");
        assert!(!said.err.contains("invalid_params"), "{said:?}");
    }
}

#[tokio::test]
async fn headings_unknown_commands_and_lists_are_sent_as_text() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Fine."));
    let session = daemon.client("alice").await.create(&daemon).await;
    let runs: [(&[&str], &str, &str); 6] = [
        (&["run", "# Fix the login"], "# Fix the login", "begins with #"),
        (&["run", "--background", "# Fix the build"], "# Fix the build", "begins with #"),
        (&["run", "/tmp explain"], "/tmp explain", "no command /tmp"),
        (&["run", "--", "- list"], "- list", ""),
        (&["submit", &session.id, "# Fix it"], "# Fix it", "begins with #"),
        (&["submit", &session.id, "--", "- more"], "- more", ""),
    ];
    for (at, (args, input, hint)) in runs.into_iter().enumerate() {
        let said = ctl(&daemon, args).await;
        assert!(said.code == 0 && said.err.contains(hint), "{args:?}: {said:?}");
        let requests = daemon.models.wait_for_requests(at + 1).await;
        let messages =
            requests.iter().map(|request| request.body["messages"].to_string()).collect::<String>();
        assert!(messages.contains(input), "{args:?}: {messages}");
        if args[0] == "submit" {
            ctl(&daemon, &["wait", &session.id]).await.stdout();
        }
    }
    assert!(!daemon.workspace().join("AGENTS.md").exists());
    for input in ["# Fix it\n", "- list\n"] {
        let mut child = command(&daemon, &["run"]).stdin(Stdio::piped()).spawn().expect("started");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(input.as_bytes()).await.expect("written");
        drop(stdin);
        assert_eq!(ended(&daemon, child).await.stdout(), "Fine.\n", "{input}");
    }
}

#[tokio::test]
async fn unknown_session_id_is_named_in_error() {
    let daemon = TestDaemon::start().await;
    let session = "ses_0190f2a4-0000-7000-8000-000000000009";
    let request = "perm_0190f2a4-0000-7000-8000-000000000009";
    for (args, words) in [
        (&["logs", "nosuch"][..], "no session is called nosuch"),
        (&["attach", "nosuch"], "no session is called nosuch"),
        (&["submit", "nosuch", "go"], "no session is called nosuch"),
        (&["abort", "nosuch"], "no session is called nosuch"),
        (&["kill", "nosuch"], "no session is called nosuch"),
        (&["rm", "nosuch"], "no session is called nosuch"),
        (&["logs", session], session),
        (&["kill", session], session),
        (&["approve", request], request),
        (&["deny", request, "--feedback", "no"], request),
        (&["approve", "0190"], "0190"),
        (&["attach"], "no session works in"),
    ] {
        let said = ctl(&daemon, args).await;
        assert_eq!((said.code, said.out.as_str()), (64, ""), "{args:?}: {said:?}");
        assert!(said.err.starts_with("agentctl: ") && said.err.contains(words), "{args:?}: {said:?}");
        assert_eq!(said.err.lines().count(), 1, "{said:?}");
    }
}
