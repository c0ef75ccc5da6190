//! `agentctl` as scripts use it, without a terminal: what it prints, and its exit codes.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{until, within};

/// How `agentctl` ended and what it said.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl Said {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let code = output.status.code().expect("it ended by itself");
        Self { code, out: text(output.stdout), err: text(output.stderr) }
    }

    /// What a command printed that must have succeeded.
    pub(super) fn fine(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    pub(super) fn json(self) -> Value {
        let out = self.fine();
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("not JSON: {out:?}"))
    }
}

/// `agentctl` in the workspace of the house, with its environment and nothing else.
pub(super) fn command(house: &TestDaemon, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentctl"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", house.path("home"))
        .env("XDG_RUNTIME_DIR", house.path("run"))
        .env("XDG_DATA_HOME", house.path("data"))
        .env("XDG_CONFIG_HOME", house.path("config"))
        .env("AGENTD_CONFIG", house.path("config.toml"))
        .args(args)
        .current_dir(house.workspace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Waits for its end.
pub(super) async fn ended(house: &TestDaemon, child: Child) -> Said {
    Said::of(within("agentctl to end", || house.log(), child.wait_with_output()).await.expect("it ran"))
}

/// Runs it to its end.
pub(super) async fn ctl(house: &TestDaemon, args: &[&str]) -> Said {
    ended(house, command(house, args).spawn().expect("agentctl starts")).await
}

/// Looks with `ps` until the session is in this state.
pub(super) async fn ps_shows(house: &TestDaemon, id: &str, state: &str) -> Value {
    let look = async {
        loop {
            let listed = ctl(house, &["ps", "--json"]).await.json();
            let listed = listed.as_array().expect("a list");
            let found =
                listed.iter().find(|session| session["session_id"] == id && session["state"] == state);
            if let Some(found) = found {
                return found.clone();
            }
        }
    };
    within(&format!("ps to show {state}"), || house.log(), look).await
}

/// Stops the daemon that `agentctl` started, also when the test fails.
struct Stop<'a>(&'a TestDaemon);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        let stop = command(self.0, &["daemon", "stop", "--now"]);
        let mut stop = stop.into_std();
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

#[tokio::test]
async fn run_prints_the_answer_while_it_is_written() {
    let house = TestDaemon::start().await;
    let gate = Gate::new();
    house.models.push(Step::text("one two three").hold_after(2, &gate));
    let mut child = command(&house, &["run", "count"]).spawn().expect("agentctl starts");
    let mut out = child.stdout.take().expect("piped");
    let mut first = [0; 8];
    within("the first words", || house.log(), out.read_exact(&mut first)).await.expect("words");
    assert_eq!(&first, b"one two ");
    gate.open();
    let mut rest = String::new();
    within("the rest", || house.log(), out.read_to_string(&mut rest)).await.expect("words");
    assert_eq!(rest, "three\n");
    let said = ended(&house, child).await;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("session "), "{said:?}");
    house.models.assert_no_breach();
}

#[tokio::test]
async fn run_takes_the_task_from_standard_input() {
    let house = TestDaemon::start().await;
    house.models.push(Step::text("Done."));
    let mut child = command(&house, &["run", "-"]).stdin(Stdio::piped()).spawn().expect("agentctl starts");
    child.stdin.take().expect("piped").write_all(b"a long\ntask").await.expect("read");
    assert_eq!(ended(&house, child).await.fine(), "Done.\n");
    let asked = house.models.requests()[0].body.to_string();
    assert!(asked.contains("a long\\ntask"), "{asked}");
}

#[tokio::test]
async fn run_prints_the_result_or_every_event_as_json() {
    let house = TestDaemon::start().await;
    house.models.otherwise(|_| Step::text("one two"));
    let result = ctl(&house, &["run", "--output", "json", "--title", "t", "go"]).await.json();
    assert_eq!((&result["subtype"], &result["text"]), (&json!("success"), &json!("one two")));
    assert!(result["session_id"].as_str().is_some_and(|id| id.starts_with("ses_")), "{result}");
    assert!(result["turn_id"].as_str().is_some_and(|id| id.starts_with("turn_")), "{result}");

    let lines = ctl(&house, &["run", "--output", "stream-json", "go"]).await.fine();
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("an event a line")).collect();
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().expect("a number")).collect();
    assert!(seqs.is_sorted(), "{seqs:?}");
    assert_eq!(events[0]["type"], "session.created");
    let last = events.last().expect("events");
    assert_eq!((&last["type"], &last["result"]["text"]), (&json!("turn.completed"), &json!("one two")));
}

#[tokio::test]
async fn a_model_server_that_is_down_is_exit_code_2() {
    // A port that was free a moment ago: nobody listens there.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let nowhere = format!("http://{}", free.local_addr().expect("an address"));
    drop(free);
    let house = TestDaemon::builder().config("[retry]\nattempts = 1").model_server_at(&nowhere).start().await;
    let said = ctl(&house, &["run", "hello"]).await;
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{said:?}");
    assert!(said.err.contains(&nowhere["http://".len()..]), "{said:?}");
    let said = ctl(&house, &["run", "--output", "json", "hello"]).await;
    let result: Value = serde_json::from_str(&said.out).expect("a result");
    assert_eq!((said.code, &result["subtype"]), (2, &json!("llm_error")));
}

#[tokio::test]
async fn what_nobody_can_be_asked_for_is_denied_and_exit_code_1() {
    let house = TestDaemon::start().await;
    house.models.push(Step::calls([bash("touch never")]));
    house.models.push(Step::text("As you like."));
    let said = ctl(&house, &["run", "make a file"]).await;
    assert_eq!((said.code, said.out.as_str()), (1, "As you like.\n"), "{said:?}");
    assert!(said.err.contains("touch never") && said.err.contains("no terminal to ask"), "{said:?}");
    assert!(!house.workspace().join("never").exists());
    let results = house.models.requests()[1].tool_results();
    let told = &results[0].1;
    assert!(told.contains("nobody at a terminal to ask") && told.contains("Nobody has refused"), "{told}");
    let audit = ctl(&house, &["audit"]).await;
    assert!(audit.fine().contains("nobody could be asked"), "and so is the audit");
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_unattended_policy_holds() {
    let policy = |on_timeout: &str| format!("[permissions.unattended]\non_timeout = \"{on_timeout}\"");

    let house = TestDaemon::builder().config(&policy("allow_read_only")).start().await;
    let outside = house.path("outside.txt");
    std::fs::write(&outside, "far away").expect("written");
    house.models.push(Step::calls([("Read", json!({"file_path": outside}))]));
    house.models.push(Step::text("Read."));
    let said = ctl(&house, &["run", "read"]).await;
    assert_eq!((said.code, said.out.as_str()), (0, "Read.\n"), "{said:?}");
    assert!(house.models.requests()[1].tool_results()[0].1.contains("far away"));

    let house = TestDaemon::builder().config(&policy("fail")).start().await;
    house.models.push(Step::calls([bash("touch never")]));
    let said = ctl(&house, &["run", "--output", "json", "make a file"]).await;
    let result: Value = serde_json::from_str(&said.out).expect("a result");
    assert_eq!((said.code, &result["subtype"]), (1, &json!("permission_denied")), "{said:?}");

    let house = TestDaemon::builder().config(&policy("pause")).start().await;
    house.models.push(Step::calls([bash("touch late")]));
    house.models.push(Step::text("Made."));
    let mut child = command(&house, &["run", "make a file"]).spawn().expect("agentctl starts");
    let mut side = BufReader::new(child.stderr.take().expect("piped")).lines();
    let waits = async {
        loop {
            let line = side.next_line().await.expect("read").expect("it goes on");
            if line.contains("agentctl approvals") {
                return;
            }
        }
    };
    within("the command to wait", || house.log(), waits).await;
    let waiting = house.client("alice").await.call("permission.list", json!({})).await;
    let request = waiting["requests"][0]["request_id"].as_str().expect("an id").to_owned();
    ctl(&house, &["approve", &request]).await.fine();
    let rest = tokio::spawn(async move { while let Ok(Some(_)) = side.next_line().await {} });
    assert_eq!(ended(&house, child).await.fine(), "Made.\n");
    rest.abort();
    assert!(house.workspace().join("late").exists());
}

#[tokio::test]
async fn a_mode_lets_run_work_without_anybody_to_ask() {
    let house = TestDaemon::start().await;
    let file = house.workspace().join("new.txt");
    house.models.push(Step::calls([("Write", json!({"file_path": file, "content": "new\n"}))]));
    house.models.push(Step::text("Written."));
    let said = ctl(&house, &["run", "-a", "accept_edits", "write"]).await;
    assert_eq!(said.fine(), "Written.\n");
    assert_eq!(house.read("new.txt"), "new\n");
}

#[tokio::test]
async fn a_turn_at_its_limit_is_exit_code_5() {
    let house = TestDaemon::start().await;
    house.write("a.txt", "alpha\n");
    let file = house.workspace().join("a.txt");
    house.models.otherwise(move |_| Step::calls([("Read", json!({"file_path": file}))]));
    let said = ctl(&house, &["run", "--max-turns", "1", "read on"]).await;
    assert_eq!(said.code, 5, "{said:?}");
    assert_eq!(house.models.requests().len(), 1);
    assert!(!said.err.trim().is_empty(), "it says why");
}

#[tokio::test]
async fn without_a_daemon_no_start_is_exit_code_69() {
    let house = TestDaemon::builder().build().await;
    for args in [&["--no-start", "run", "hi"][..], &["ps", "--no-start"], &["daemon", "status"]] {
        let said = ctl(&house, args).await;
        assert_eq!((said.code, said.out.as_str()), (69, ""), "{args:?}: {said:?}");
        assert!(said.err.contains("agentctl daemon start"), "{args:?}: {said:?}");
    }
    assert!(!house.socket().exists());
}

#[tokio::test]
async fn within_a_tool_that_does_not_see_its_daemon_none_is_started() {
    let house = TestDaemon::builder().build().await;
    let mut within = command(&house, &["approve", "perm_x"]);
    within.env("AGENTD_CALL", "call_x").env("AGENTD_SOCKET", house.socket());
    let said = ended(&house, within.spawn().expect("agentctl starts")).await;
    assert!(said.code == 1 && said.err.contains("may not answer"), "{said:?}");
    assert!(!house.socket().exists() && !house.path("data/agentd/agentd.db").exists());
}

#[tokio::test]
async fn run_starts_a_daemon_and_what_it_did_outlives_a_stop() {
    let house = TestDaemon::builder().build().await;
    let _stop = Stop(&house);
    house.models.otherwise(|_| Step::text("Hello."));
    let result = ctl(&house, &["run", "--output", "json", "hello"]).await.json();
    let status = ctl(&house, &["daemon", "status", "--json"]).await.json();
    assert_eq!(status["main_model"], "scripted/model");
    assert_eq!(ctl(&house, &["run", "hello"]).await.fine(), "Hello.\n");
    let again = ctl(&house, &["daemon", "status", "--json"]).await.json();
    assert_eq!(again["pid"], status["pid"], "one daemon for both");

    assert!(ctl(&house, &["daemon", "stop"]).await.fine().contains("stopped"));
    assert!(UnixStream::connect(house.socket()).await.is_err(), "nobody listens any more");
    let said = ctl(&house, &["daemon", "stop"]).await;
    assert!(said.err.contains("no daemon was running"), "{said:?}");
    said.fine();

    let listed = ctl(&house, &["ps", "--json"]).await.json();
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 2, "a new daemon knows both");
    assert!(listed.iter().any(|session| session["session_id"] == result["session_id"]));
    assert_ne!(ctl(&house, &["daemon", "status", "--json"]).await.json()["pid"], status["pid"]);
    ctl(&house, &["daemon", "stop", "--now"]).await.fine();
}

#[tokio::test]
async fn a_client_that_stays_leaves_nothing_of_the_daemons_that_it_started() {
    let house = TestDaemon::builder().build().await;
    let _stop = Stop(&house);
    house.models.otherwise(|_| Step::text("Hello."));
    let done = ctl(&house, &["run", "--output", "json", "hello"]).await.json();
    let id = done["session_id"].as_str().expect("an id").to_owned();
    ctl(&house, &["daemon", "stop"]).await.fine();

    let mut follower = command(&house, &["logs", "-f", &id]).spawn().expect("agentctl starts");
    let mut out = follower.stdout.take().expect("piped");
    let mut first = [0; 1];
    within("its first word", || house.log(), out.read_exact(&mut first)).await.expect("words");
    let drain = tokio::spawn(async move { tokio::io::copy(&mut out, &mut tokio::io::sink()).await });
    let daemon = async || ctl(&house, &["--no-start", "daemon", "status", "--json"]).await;
    let first = daemon().await.json()["pid"].as_i64().expect("a pid");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(first as i32), nix::sys::signal::SIGKILL)
        .expect("killed");
    // It starts another one, and follows on.
    let again = async {
        loop {
            let said = daemon().await;
            if said.code == 0 && said.json()["pid"] != first {
                return;
            }
        }
    };
    within("another daemon", || house.log(), again).await;
    // Its exit status is taken, so its number is free.
    let of_first = format!("/proc/{first}");
    let is_gone = || (!std::path::Path::new(&of_first).exists()).then_some(());
    until("the first daemon to be gone", || house.log(), is_gone).await;
    follower.kill().await.expect("killed");
    drain.await.expect("drained").expect("read");
}

#[tokio::test]
async fn a_session_in_the_background_is_looked_after_from_outside() {
    let house = TestDaemon::start().await;
    house.models.push(Step::calls([bash("touch made")]));
    house.models.push(Step::text("It is made."));
    let id = ctl(&house, &["run", "--background", "make it"]).await.fine();
    let id = id.trim_end();
    assert!(id.starts_with("ses_") && !id.contains(char::is_whitespace), "{id:?}");

    assert_eq!(ps_shows(&house, id, "requires_action").await["requires"], "permission");
    assert!(ctl(&house, &["ps"]).await.fine().contains("waits: permission"));
    let waiting = ctl(&house, &["approvals", "--json"]).await.json();
    let waiting = waiting.as_array().expect("a list");
    assert_eq!((waiting.len(), &waiting[0]["session_id"]), (1, &json!(id)));
    assert_eq!(waiting[0]["input"]["command"], "touch made");
    let request = waiting[0]["request_id"].as_str().expect("an id");
    assert!(ctl(&house, &["approvals"]).await.fine().contains(request));
    let whole = ctl(&house, &["approvals", &request[..request.len() - 4]]).await.fine();
    assert!(whole.starts_with(request) && whole.contains("▌ May Bash do this?"), "{whole}");
    assert!(
        whole.contains("    $ touch made\n") && whole.contains("could be granted: Bash(touch made)"),
        "{whole}"
    );
    let said = ctl(&house, &["rm", id]).await;
    assert!(said.code == 4 && said.err.contains("is working"), "{said:?}");

    let allowed = ctl(&house, &["approve", &request["perm_".len()..request.len() - 4]]).await.fine();
    assert_eq!(allowed, format!("allowed {request}\n"));
    ps_shows(&house, id, "idle").await;
    assert!(house.workspace().join("made").exists());
    let said = ctl(&house, &["approve", request]).await;
    assert!(said.code == 4 && !said.err.is_empty(), "an answer counts once: {said:?}");

    let logs = ctl(&house, &["logs", id]).await.fine();
    for word in ["make it", "permission.requested", "touch made", "tool.completed", "It is made."] {
        assert!(logs.contains(word), "{word:?} is missing in:\n{logs}");
    }
    let lines = ctl(&house, &["logs", "--json", id]).await.fine();
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("an event a line")).collect();
    assert_eq!(events[0]["type"], "session.created");
    assert!(events.iter().any(|event| event["type"] == "permission.resolved"));
    house.models.assert_no_breach();
}

#[tokio::test]
async fn attach_gives_the_session_each_line_and_shows_the_answer() {
    let house = TestDaemon::start().await;
    house.models.push(Step::text("Hello."));
    let id = ctl(&house, &["run", "--output", "json", "hello"]).await.json()["session_id"].clone();
    let id = id.as_str().expect("an id");
    // By its id, and as the newest of this folder.
    for args in [&["attach", id][..], &["attach"]] {
        house.models.push(Step::text("Very well indeed."));
        let mut child = command(&house, args).stdin(Stdio::piped()).spawn().expect("agentctl starts");
        child.stdin.take().expect("piped").write_all(b"how are you?\n").await.expect("read");
        let out = ended(&house, child).await.fine();
        assert!(out.contains("hello") && out.contains("Hello."), "the history: {out}");
        assert!(out.contains("Very well indeed.\n"), "{out}");
    }
    let asked = house.models.requests();
    assert!(asked[1].messages().last().expect("a message").to_string().contains("how are you?"));
    assert_eq!(asked.len(), 3);
    house.models.assert_no_breach();
}

/// `agentctl attach` in a terminal of its own, and the other end of that terminal.
async fn attached(house: &TestDaemon, session: &str) -> (Child, tokio::fs::File) {
    let size = nix::pty::Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = nix::pty::openpty(&size, None).expect("a terminal");
    // Held by nobody but us, else it does not go away with us.
    let own = nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC);
    nix::fcntl::fcntl(&pty.master, own).expect("ours alone");
    let slave = || Stdio::from(pty.slave.try_clone().expect("a copy"));
    let mut command = command(house, &["attach", session]);
    command.env("TERM", "xterm").stdin(slave()).stdout(slave()).stderr(slave());
    let child = command.spawn().expect("agentctl starts");
    drop((command, pty.slave));
    let mut terminal = tokio::fs::File::from_std(std::fs::File::from(pty.master));
    let look = async {
        let mut seen = String::new();
        let mut bytes = [0; 4096];
        while !seen.contains("detaches") {
            let count = terminal.read(&mut bytes).await.expect("a screen");
            let part = String::from_utf8_lossy(&bytes[..count]).into_owned();
            // It asks where the cursor is.
            if part.contains("\u{1b}[6n") {
                terminal.write_all(b"\x1b[1;1R").await.expect("told");
                terminal.flush().await.expect("told");
            }
            seen += &part;
        }
    };
    within("the attached screen", || house.log(), look).await;
    (child, terminal)
}

#[tokio::test]
async fn attach_ends_with_its_terminal_and_when_it_is_told_to() {
    let house = TestDaemon::start().await;
    house.models.otherwise(|_| Step::text("Done."));
    let made = ctl(&house, &["run", "--output", "json", "go"]).await.json();
    let session = made["session_id"].as_str().expect("an id");

    let (mut child, terminal) = attached(&house, session).await;
    drop(terminal);
    let status = within("the end without a terminal", || house.log(), child.wait()).await.expect("it ran");
    assert!(status.code().is_some_and(|code| code != 0), "{status:?}");

    for told in [nix::sys::signal::SIGTERM, nix::sys::signal::SIGHUP] {
        let (mut child, terminal) = attached(&house, session).await;
        let pid = i32::try_from(child.id().expect("it runs")).expect("a number");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), told).expect("told");
        let status = within("the end after a signal", || house.log(), child.wait()).await.expect("it ran");
        assert_eq!(status.code(), Some(3), "{told}");
        drop(terminal);
    }
}

#[tokio::test]
async fn submit_abort_kill_and_rm() {
    let house = TestDaemon::start().await;
    let gate = Gate::new();
    house.models.push(Step::text("Hello."));
    house.models.push(Step::text("one two").hold_after(1, &gate));
    let id = ctl(&house, &["run", "--output", "json", "--title", "mine", "hello"]).await.json();
    let id = id["session_id"].as_str().expect("an id").to_owned();
    let turn = ctl(&house, &["submit", "mine", "count"]).await.fine();
    assert!(turn.starts_with("turn_"), "{turn:?}");
    gate.reached().await;
    assert!(ctl(&house, &["abort", &id]).await.fine().contains(turn.trim_end()));
    ps_shows(&house, &id, "idle").await;
    assert!(ctl(&house, &["abort", &id]).await.err.contains("nothing was running"));

    assert_eq!(ctl(&house, &["kill", &id]).await.fine(), format!("{id}\n"));
    assert_eq!(ctl(&house, &["ps", "--json"]).await.json(), json!([]));
    let all = ctl(&house, &["ps", "-a", "--json"]).await.json();
    assert_eq!((&all[0]["session_id"], &all[0]["state"]), (&json!(id), &json!("ended")));
    assert!(ctl(&house, &["logs", &id]).await.fine().contains("Hello."), "its history stays");
    let said = ctl(&house, &["submit", &id, "more"]).await;
    assert!(said.code == 4 && said.err.contains("takes no more input"), "{said:?}");

    assert_eq!(ctl(&house, &["rm", &id]).await.fine(), format!("{id}\n"));
    assert_eq!(ctl(&house, &["ps", "-a", "--json"]).await.json(), json!([]));
    assert_eq!(ctl(&house, &["logs", &id]).await.code, 4);
}

#[tokio::test]
async fn wrong_use_is_exit_code_64_and_starts_nothing() {
    let house = TestDaemon::builder().build().await;
    for args in [
        &[][..],
        &["nonsense"],
        &["run", "--output", "xml", "go"],
        &["run", "--approval-mode", "anything", "go"],
        &["run", "--max-usd", "much", "go"],
        &["run", "-w", "/nonexistent", "go"],
        &["run", " "],
        &["run", "--worktree", "go"],
        &["logs"],
        &["logs", "x", "--since", "yesterday"],
        &["kill"],
        &["kill", "x", "--all"],
        &["submit", "x", ""],
        &["abort", "x", "--call", "y"],
    ] {
        let said = ctl(&house, args).await;
        assert_eq!((said.code, said.out.as_str()), (64, ""), "{args:?}: {said:?}");
        assert!(!said.err.trim().is_empty(), "{args:?} is refused without a word");
    }
    for args in [["--help"], ["--version"]] {
        let said = ctl(&house, &args).await;
        assert!(said.err.is_empty() && said.fine().contains("agentctl"), "{args:?}");
    }
    assert!(!house.socket().exists() && !house.path("data").exists());
}

#[tokio::test]
async fn an_id_that_nothing_has_is_named() {
    let house = TestDaemon::start().await;
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
        let said = ctl(&house, args).await;
        assert_eq!((said.code, said.out.as_str()), (4, ""), "{args:?}: {said:?}");
        assert!(said.err.starts_with("agentctl: ") && said.err.contains(words), "{args:?}: {said:?}");
        assert_eq!(said.err.lines().count(), 1, "{said:?}");
    }
}
