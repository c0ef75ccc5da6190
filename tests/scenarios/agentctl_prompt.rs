//! Standard input of `agentctl`: piped text together with a task, and keys in a terminal.

use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::agentctl::{command, ctl, ended, ps_shows};
use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{DEADLINE, with_deadline};

#[tokio::test]
async fn piped_input_becomes_a_second_block_of_the_task() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    let piped = async |args: &[&str], text: &'static [u8]| {
        let mut child = command(&daemon, args).stdin(Stdio::piped()).spawn().expect("agentctl starts");
        child.stdin.take().expect("piped").write_all(text).await.expect("read");
        ended(&daemon, child).await
    };
    let session =
        piped(&["run", "--output", "json", "review"], b"+a\n-b\n").await.json()["session_id"].clone();
    let session = session.as_str().expect("an id");
    piped(&["submit", session, "and this"], b"+c\n").await.stdout();
    ps_shows(&daemon, session, "idle").await;
    let id = piped(&["run", "--background", "look"], b"+d\n").await.stdout();
    ps_shows(&daemon, id.trim_end(), "idle").await;
    ctl(&daemon, &["run", "alone"]).await.stdout();
    piped(&["run", "empty"], b"").await.stdout();
    let asked = daemon.models.requests();
    let said = |n: usize| asked[n].messages().last().expect("a message").to_string().replace("\\n", "\n");
    for (n, words) in
        ["review\n+a\n-b\n", "and this\n+c\n", "look\n+d\n", "\"alone\"", "\"empty\""].iter().enumerate()
    {
        assert!(said(n).contains(words), "{n}: {}", said(n));
    }
    let said = piped(&["run", "review"], b"\xff\xfe").await;
    assert!(said.code == 64 && said.err.contains("UTF-8"), "{said:?}");
}

#[tokio::test]
async fn idle_pipe_is_ignored_and_slow_pipeline_is_awaited() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    // The program that starts `agentctl` holds the pipe open.
    let mut child = command(&daemon, &["run", "go"]).stdin(Stdio::piped()).spawn().expect("agentctl starts");
    let held = child.stdin.take();
    let said = ended(&daemon, child).await;
    assert!(said.code == 0 && said.err.contains("standard input is open"), "{said:?}");
    drop(held);
    // The producer takes longer than `agentctl` waits for a silent pipe.
    let prepared = command(&daemon, &[]);
    let mut shell = Command::new("bash");
    shell
        .args(["-c", "{ sleep 3; echo late; } | \"$0\" run review", env!("CARGO_BIN_EXE_agentctl")])
        .env_clear()
        .envs(prepared.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(daemon.workspace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let said = ended(&daemon, shell.spawn().expect("bash starts")).await;
    assert!(said.code == 0 && said.err.contains("reading standard input until it ends"), "{said:?}");
    let last = |n: usize| daemon.models.requests()[n].messages().last().expect("a message").to_string();
    assert!(last(0).contains("\"go\"") && last(1).contains("review\\nlate"), "{} {}", last(0), last(1));
}

/// `agentctl` in its own terminal, seen from the other end of that terminal.
pub(super) struct Terminal<'a> {
    daemon: &'a TestDaemon,
    child: Child,
    end: tokio::fs::File,
    seen: String,
}

impl<'a> Terminal<'a> {
    pub(super) fn start(daemon: &'a TestDaemon, args: &[&str]) -> Self {
        Self::start_with_columns(daemon, args, 400)
    }

    pub(super) fn start_with_columns(daemon: &'a TestDaemon, args: &[&str], columns: u16) -> Self {
        let size = nix::pty::Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = nix::pty::openpty(&size, None).expect("a terminal");
        let slave = || Stdio::from(pty.slave.try_clone().expect("a copy"));
        let prepared = command(daemon, args);
        let prepared = prepared.as_std();
        // The program must not see the terminal of the tests, which has other columns.
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", "--wait"])
            .arg(prepared.get_program())
            .args(prepared.get_args())
            .env_clear()
            .envs(prepared.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .current_dir(daemon.workspace())
            .kill_on_drop(true);
        command.env("TERM", "xterm").env("NO_COLOR", "1").stdin(slave()).stdout(slave()).stderr(slave());
        let child = command.spawn().expect("agentctl starts");
        let end = tokio::fs::File::from_std(std::fs::File::from(pty.master));
        Self { daemon, child, end, seen: String::new() }
    }

    /// Waits until the terminal has shown this text since the last call.
    pub(super) async fn shows(&mut self, text: &str) -> String {
        self.shows_in_turn(&[text]).await
    }

    /// Waits until the terminal has shown these texts since the last call, one after the other.
    pub(super) async fn shows_in_turn(&mut self, texts: &[&str]) -> String {
        let mut bytes = [0; 4096];
        let mut part = String::new();
        let has_all =
            |part: &str| texts.iter().try_fold(part, |rest, text| Some(rest.split_once(text)?.1)).is_some();
        while !has_all(&part) {
            let read = tokio::time::timeout(DEADLINE, self.end.read(&mut bytes)).await;
            let count = read
                .unwrap_or_else(|_| panic!("waited in vain for {texts:?}: {part:?}\n{}", self.daemon.log()));
            let count = count.expect("a screen");
            let read = String::from_utf8_lossy(&bytes[..count]).into_owned();
            // The program asks for the cursor position.
            if read.contains("\u{1b}[6n") {
                self.keys("\u{1b}[1;1R").await;
            }
            part += &read;
        }
        self.seen += &part;
        part
    }

    pub(super) async fn keys(&mut self, keys: &str) {
        self.end.write_all(keys.as_bytes()).await.expect("typed");
        self.end.flush().await.expect("typed");
    }

    /// All that the program has written.
    pub(super) fn output(&self) -> &str {
        &self.seen
    }

    /// Waits until the program has ended.
    pub(super) async fn ends(&mut self) -> std::process::ExitStatus {
        let ended = with_deadline("the end of the program", || self.daemon.log(), self.child.wait()).await;
        ended.expect("it ran")
    }

    /// The command on the screen that begins like this, up to the end of its row.
    fn command_line(&self, beginning: &str) -> String {
        let from = self.seen.rfind(beginning).expect("a command");
        self.seen[from..].chars().take_while(|c| !c.is_control()).collect()
    }
}

/// The page that confirms a rule ignores keys for a moment. The tests wait until that time is over.
const PAGE_IGNORES_KEYS: std::time::Duration = std::time::Duration::from_secs(1);

/// Runs a command line as if it had been pasted into a shell in the home folder.
async fn paste(daemon: &TestDaemon, line: &str) {
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_agentctl")).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a path"));
    let prepared = command(daemon, &[]);
    let mut shell = Command::new("bash");
    shell
        .args(["-c", line])
        .env_clear()
        .envs(prepared.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("PATH", path)
        .current_dir(daemon.path("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let said = ended(daemon, shell.spawn().expect("bash starts")).await;
    assert_eq!(said.code, 0, "{line}: {said:?}");
}

#[tokio::test]
async fn text_typed_in_attach_does_not_answer_request() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let mut terminal = Terminal::start(&daemon, &["attach", &session.id]);
    terminal.shows("detaches").await;
    terminal.keys("please be careful").await;
    daemon.models.push(Step::calls([bash("touch made")]));
    daemon.models.push(Step::text("It is made."));
    session.submit("make it").await;
    seen.wait_for("permission.requested").await;
    // The last row of the list is visible, so the keys work; the draft is visible as well.
    terminal.shows("↑↓").await;
    assert!(seen.events_of("permission.resolved").is_empty() && !daemon.workspace().join("made").exists());
    // The program writes only changed screen cells, so from here on the output says little about the
    // screen. Without a draft the keys are meant for the list: 3 opens the page that confirms a rule.
    terminal.keys("\u{15}3").await;
    terminal.shows("Writes").await;
    tokio::time::sleep(PAGE_IGNORES_KEYS).await;
    terminal.keys("\r").await;
    let resolved = seen.wait_for("permission.resolved").await;
    assert_eq!((&resolved["decision"], &resolved["scope"]), (&json!("allow"), &json!("project")));
    seen.turn_ends("success").await;
    assert!(daemon.workspace().join("made").exists());
}

#[tokio::test]
async fn text_typed_in_run_does_not_answer_request() {
    let daemon = TestDaemon::start().await;
    let gate = Gate::new();
    daemon.models.push(Step::calls([bash("touch made")]).say("one two").hold_after(1, &gate));
    daemon.models.push(Step::calls([bash("touch 'it''s' more")]));
    daemon.models.push(Step::text("It is made."));
    // The undo command has to name the socket again.
    let socket = daemon.socket().display().to_string();
    let mut terminal = Terminal::start(&daemon, &["--socket", &socket, "run", "make it"]);
    terminal.shows("one").await;
    terminal.keys("please be careful, say yes").await;
    gate.open();
    terminal.shows("↑↓").await;
    assert!(!daemon.workspace().join("made").exists());
    terminal.keys("2").await;
    terminal.shows("rules rm --session").await;
    terminal.shows("↑↓").await;
    let session_undo = terminal.command_line("agentctl --socket");
    terminal.keys("3").await;
    terminal.shows("Writes").await;
    tokio::time::sleep(PAGE_IGNORES_KEYS).await;
    terminal.keys("\r").await;
    terminal.shows("It is made.").await;
    let folder_undo = terminal.command_line("cd '");
    let status = with_deadline("the end of the turn", || daemon.log(), terminal.child.wait()).await;
    assert!(status.expect("it ran").success());

    let sessions = ctl(&daemon, &["ps", "--json"]).await.json();
    let id = sessions[0]["session_id"].as_str().expect("an id").to_owned();
    let rules = async || ctl(&daemon, &["rules", "list", "--session", &id]).await.stdout();
    let all = rules().await;
    assert!(all.contains("Bash(touch made)") && all.contains("Bash(touch 'it''s' more)"), "{all}");
    for line in [&session_undo, &folder_undo] {
        assert!(line.contains(&format!("agentctl --socket '{socket}' rules rm")), "{line}");
    }
    paste(&daemon, &session_undo).await;
    let left = rules().await;
    assert!(!left.contains("Bash(touch made)") && left.contains("Bash(touch 'it''s' more)"), "{left}");
    paste(&daemon, &folder_undo).await;
    assert_eq!(rules().await, "");
}

#[tokio::test]
async fn plain_run_takes_answers_as_lines() {
    let daemon = TestDaemon::start().await;
    let questions = json!([{"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]}]);
    daemon.models.push(Step::calls([("AskUser", json!({ "questions": questions }))]));
    daemon.models.push(Step::calls([bash("touch made")]));
    daemon.models.push(Step::calls([bash("touch other")]));
    daemon.models.push(Step::text("It is made."));
    let mut terminal = Terminal::start(&daemon, &["--plain", "run", "make it"]);
    terminal.shows("your own words, then Enter").await;
    terminal.keys("2\n").await;
    terminal.shows("4 WORDS tells the model why").await;
    terminal.keys("3\n").await;
    terminal.shows("Enter alone goes back").await;
    terminal.keys("1\n").await;
    terminal.shows("4 WORDS tells the model why").await;
    terminal.keys("4 one file is enough\n").await;
    terminal.shows("It is made.").await;
    terminal.ends().await;
    assert!(daemon.workspace().join("made").exists() && !daemon.workspace().join("other").exists());
    let asked = daemon.models.requests();
    let answered = asked[1].tool_results().pop().expect("a result").1;
    assert!(answered.contains("Answer: blue"), "{answered}");
    let denied = asked[3].tool_results().pop().expect("a result").1;
    assert!(denied.contains("one file is enough"), "{denied}");
    assert!(!terminal.output().contains("\u{1b}[2J"), "lines are printed, and no screen is drawn");
}

#[tokio::test]
async fn key_for_all_edits_changes_mode_of_session() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let mut terminal = Terminal::start(&daemon, &["attach", &session.id]);
    terminal.shows("detaches").await;
    daemon.models.push(Step::calls([("Write", json!({"file_path": "new.txt", "content": "a\n"}))]));
    daemon.models.push(Step::text("It is made."));
    session.submit("make it").await;
    let screen = terminal.shows("↑↓").await;
    assert!(screen.contains("all edits of this session"), "{screen:?}");
    terminal.keys("6").await;
    let is_mode =
        |event: &serde_json::Value| event["type"] == "session.updated" && event["mode"] == "accept_edits";
    seen.find("the new mode", is_mode).await;
    assert_eq!(session.view().await["mode"], "accept_edits");
    terminal.shows("It is made.").await;
    assert_eq!(daemon.read("new.txt"), "a\n");
}

#[tokio::test]
async fn demo_on_terminal_shows_screen_that_takes_keys() {
    let daemon = TestDaemon::builder().build().await;
    let mut terminal = Terminal::start(&daemon, &["demo"]);
    let screen = terminal.shows("↑↓").await;
    assert!(screen.contains("Yes, once"), "{screen:?}");
    terminal.keys("1").await;
    // The keys of the next request follow the answer to this one.
    terminal.shows_in_turn(&["allowed once by you", "↑↓"]).await;
    terminal.keys("1").await;
    let screen = terminal.shows_in_turn(&["● Bash sh test.sh", "What is left", "PROVIDER/MODEL"]).await;
    assert!(screen.contains("greet.sh was changed on disk"), "{screen:?}");
    assert!(terminal.ends().await.success());
}
