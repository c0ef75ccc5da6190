//! `agentctl demo`: the main scenario with a recorded model, without a key and without a network. All other
//! parts are real: a separate daemon, a session, tool calls, permission requests, an edit and a test run in a
//! temporary folder.

mod interruption;

use api::methods;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tokio::signal::unix::{SignalKind, signal};

use crate::answer::policy::AnswerPolicy;
use crate::args::{Output, PsArgs, Thinking};
use crate::commands::{daemon, ps};
use crate::connection::connector::{Connector, NAME, private_dir};
use crate::connection::follow::SessionFollower;
use crate::connection::paths::ClientPaths;
use crate::connection::session_calls::{self, idempotency_key};
use crate::failure::{Failure, code};
use crate::terminal::out::OutputStreams;
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::attach;
use crate::ui::summary::diff;
use crate::ui::watch::TurnWatcher;
use api::params::{ClientRole, CreateParams, SessionReply, ShutdownMode, ShutdownParams};

const CASSETTE: &str = include_str!("demo/cassette.jsonl");
const GREET: &str = include_str!("demo/greet.sh");
const TEST: &str = include_str!("demo/test.sh");
const PROMPT: &str = "test.sh fails. Find out why and fix it.";

/// Maximum bytes of a Unix socket's path that every supported system accepts.
const MAX_SOCKET_PATH_BYTES: usize = 100;

pub(crate) async fn demo(yes: bool, keep: bool) -> Result<(), Failure> {
    let mut out = OutputStreams::all_on_stdout();
    let out = &mut out;
    // From here on an interrupt must also stop the daemon. The code that follows the turn receives the signal
    // too.
    let _interrupts = signal(SignalKind::interrupt())?;
    let scratch = DemoFolder::create()?;
    let people = io::stdin().is_terminal() && io::stdout().is_terminal();
    let asking = if people && !yes { AnswerPolicy::Person } else { AnswerPolicy::Allow };
    let reach = Connector {
        places: scratch.paths(),
        host: None,
        may_start: true,
        role: ClientRole::Controller,
        name: NAME.into(),
    };
    let outcome = play(&reach, &scratch, asking, out).await;
    if keep {
        print_kept_epilogue(&scratch, out)?;
        scratch.keep_running();
        return outcome;
    }
    // Discard the output: it says that sessions are kept, which is not true here.
    let stopped = daemon::stop(
        &reach,
        ShutdownParams { mode: ShutdownMode::Now, restart: false },
        &mut OutputStreams::silent(),
    )
    .await;
    epilogue(&scratch, out)?;
    outcome.and(stopped)
}

async fn play(
    reach: &Connector,
    scratch: &DemoFolder,
    asking: AnswerPolicy,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    heading(out, "A daemon of its own")?;
    let client = reach.connect_or_start().await?;
    say(out, &format!("agentd {} answers at {}", client.hello().version, reach.places.socket.display()))?;
    say(out, "Real: the daemon, its journal, the tools, the permissions. Recorded: what the model says.")?;

    heading(out, "A project with a failing test")?;
    say(out, &format!("{} holds greet.sh and test.sh", scratch.work().display()))?;

    heading(out, &format!("agentctl run \"{PROMPT}\""))?;
    match asking {
        AnswerPolicy::Person => say(out, "Nothing is changed or run before you allow it: y, n, …")?,
        _ => say(
            out,
            "There is no user at the keyboard: the demonstration allows each request once, and says so.",
        )?,
    }
    let cwd =
        scratch.work().to_str().map(String::from).ok_or_else(|| Failure::usage("TMPDIR is not UTF-8"))?;
    let params = CreateParams {
        cwd,
        title: Some("fix greet.sh".into()),
        idempotency_key: Some(idempotency_key()),
        ..CreateParams::default()
    };
    let reply: SessionReply = client.call::<methods::session::Create>(&params).await?;
    let id = reply.session.session_id;
    let turn = session_calls::submit(&client, id, PROMPT, None).await?.turn_id;
    let (client, seq) = interruption::show(reach, client, id, out).await?;
    // On a terminal, the demonstration shows the same screen as `agentctl run`, from the first event on. Elsewhere the
    // lines continue those that were printed above.
    let has_screen = asking == AnswerPolicy::Person && attach::is_full_terminal(false);
    let from = if has_screen { 0 } else { seq };
    let follow = SessionFollower::start_with(reach, &client, id, from, Thinking::Hide.include()).await?;
    let ended = if has_screen {
        let options = attach::Options { thinking: Thinking::Hide, ..attach::Options::default() };
        attach::follow_one_turn(reach, client, follow, (reply.session, turn), options).await?
    } else {
        let watch = TurnWatcher::new(client, follow, (reply.session, turn), asking, Output::Text);
        watch.until_ended(out).await?
    };

    heading(out, "What is left")?;
    let now = fs::read_to_string(scratch.work().join("greet.sh"))?;
    let changed = now != GREET;
    if changed {
        say(out, "greet.sh was changed on disk:")?;
        for line in diff(&changes(GREET, &now)) {
            out.line(&line)?;
        }
    } else {
        say(out, "greet.sh is as it was: the edit was not allowed.")?;
    }
    say(out, "The session is kept by the daemon (agentctl ps -A):")?;
    ps::ps(reach, &PsArgs { all: true, all_folders: true, ..PsArgs::default() }, out).await?;
    match ended.code {
        code::SUCCESS if changed || asking == AnswerPolicy::Person => Ok(()),
        code::SUCCESS => Err(Failure::internal("the turn ended well, but greet.sh did not change")),
        other => Err(Failure::silent(other)),
    }
}

/// The differing lines of two files with the same number of lines.
fn changes(before: &str, after: &str) -> String {
    let pairs = before.lines().zip(after.lines()).filter(|(old, new)| old != new);
    pairs.map(|(old, new)| format!("-{old}\n+{new}\n")).collect()
}

/// Prints a sentence, in rows that break between words.
fn say(out: &mut OutputStreams, text: &str) -> io::Result<()> {
    out.wrapped_line(&StyledLine::new(Tone::Plain, text))
}

fn heading(out: &mut OutputStreams, text: &str) -> io::Result<()> {
    out.say("")?;
    out.line(&StyledLine::new(Tone::Bold, format!("== {text}")))
}

fn epilogue(scratch: &DemoFolder, out: &mut OutputStreams) -> io::Result<()> {
    say(out, &format!("{} is removed; --keep leaves it in place.", scratch.root.display()))?;
    print_next_steps(out)
}

fn print_kept_epilogue(scratch: &DemoFolder, out: &mut OutputStreams) -> io::Result<()> {
    let config = scratch.config();
    let config = config.display();
    out.say("")?;
    say(out, &format!("Kept: {}. To look at it:", scratch.root.display()))?;
    for command in ["ps -a", "attach 'fix greet.sh'", "logs 'fix greet.sh'", "daemon stop"] {
        out.say(&format!("  agentctl --config {config} {command}"))?;
    }
    print_next_steps(out)
}

fn print_next_steps(out: &mut OutputStreams) -> io::Result<()> {
    out.say("")?;
    say(out, "With a model of your own: set ANTHROPIC_API_KEY, OPENAI_API_KEY or OLLAMA_HOST, then")?;
    out.say("  agentctl run --model PROVIDER/MODEL \"what you want done\"")
}

/// The folder of the demonstration; removed on drop.
struct DemoFolder {
    root: PathBuf,
    guard: Option<tempfile::TempDir>,
}

impl DemoFolder {
    fn create() -> Result<Self, Failure> {
        let mut parent = std::env::temp_dir();
        if parent.as_os_str().len() + "/agentd-demo-123456/agentd/agentd.sock".len() > MAX_SOCKET_PATH_BYTES {
            parent = PathBuf::from("/tmp");
        }
        Self::create_in(&parent)
    }

    fn create_in(parent: &Path) -> Result<Self, Failure> {
        let private = fs::Permissions::from_mode(0o700);
        let guard =
            tempfile::Builder::new().prefix("agentd-demo-").permissions(private).tempdir_in(parent)?;
        let root = fs::canonicalize(guard.path())?;
        let scratch = Self { root, guard: Some(guard) };
        private_dir(&scratch.work())?;
        private_dir(&scratch.shared())?;
        fs::write(scratch.work().join("greet.sh"), GREET)?;
        fs::write(scratch.work().join("test.sh"), TEST)?;
        fs::write(scratch.shared().join("cassette.jsonl"), CASSETTE)?;
        fs::write(scratch.config(), scratch.settings())?;
        Ok(scratch)
    }

    fn work(&self) -> PathBuf {
        self.root.join("project")
    }

    /// The daemon's own files, outside the project: no tool may write there.
    fn shared(&self) -> PathBuf {
        self.root.join("agentd")
    }

    fn config(&self) -> PathBuf {
        self.shared().join("config.toml")
    }

    fn settings(&self) -> String {
        let path = |name: &str| toml::Value::from(self.shared().join(name).display().to_string()).to_string();
        format!(
            "[daemon]\nsocket = {}\ndata_dir = {}\n\n[providers.demo]\nkind = \"replay\"\ncassette = {}\n\n\
             [models]\nmain = \"demo/replay\"\n",
            path("agentd.sock"),
            path("data"),
            path("cassette.jsonl"),
        )
    }

    fn paths(&self) -> ClientPaths {
        ClientPaths {
            socket: self.shared().join("agentd.sock"),
            is_socket_named: true,
            data_dir: self.shared().join("data"),
            config_flag: Some(self.config()),
            config_files: vec![(self.config(), true)],
            flags: Vec::new(),
        }
    }

    fn keep_running(mut self) {
        if let Some(guard) = self.guard.take() {
            let _ = guard.keep();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::demo::*;
    use serde_json::Value;
    use std::process::Command;

    fn test_passes(work: &Path) -> bool {
        Command::new("sh").arg("test.sh").current_dir(work).output().expect("sh runs").status.success()
    }

    #[test]
    fn recorded_demo_edit_makes_failing_test_pass() {
        let parent = tempfile::tempdir().expect("a folder");
        let scratch = DemoFolder::create_in(parent.path()).expect("a scratch folder");
        assert!(!test_passes(&scratch.work()), "the bug is there");
        let records: Vec<Value> = CASSETTE.lines().map(|l| serde_json::from_str(l).expect("json")).collect();
        assert_eq!(records[0], serde_json::json!({"cassette": 1, "match": "order"}));
        let calls: Vec<&Value> =
            records[1..].iter().filter_map(|r| r["calls"].as_array()).flatten().collect();
        let tools: Vec<&str> = calls.iter().filter_map(|c| c["tool"].as_str()).collect();
        assert_eq!(tools, ["Read", "Read", "Grep", "Edit", "Bash"]);
        let edit = &calls[3]["input"];
        let (old, new) =
            (edit["old_string"].as_str().expect("old"), edit["new_string"].as_str().expect("new"));
        assert_eq!(GREET.matches(old).count(), 1, "the edit is unambiguous");
        let mended = GREET.replace(old, new);
        fs::write(scratch.work().join("greet.sh"), &mended).expect("written");
        assert!(test_passes(&scratch.work()), "the edit mends it");
        assert_eq!(changes(GREET, &mended), "-    echo \"Hello, $nmae!\"\n+    echo \"Hello, $name!\"\n");
    }

    #[test]
    fn demo_folder_is_private_and_self_contained() {
        let parent = tempfile::tempdir().expect("a folder");
        let scratch = DemoFolder::create_in(parent.path()).expect("a scratch folder");
        let mode = fs::metadata(&scratch.root).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o700);
        let settings: toml::Table = scratch.settings().parse().expect("toml");
        let socket = settings["daemon"]["socket"].as_str().expect("a socket");
        assert_eq!(Path::new(socket), scratch.paths().socket);
        assert!(settings["providers"]["demo"]["cassette"].as_str().is_some_and(|c| Path::new(c).is_file()));
        let root = scratch.root.clone();
        drop(scratch);
        assert!(!root.exists());
    }
}
