//! Sessions over ssh: what is sent, and what happens when the connection breaks.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{FakeSsh, HOST};
use crate::scenarios::agentctl::{ctl, ended};
use crate::scenarios::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::with_deadline;

#[tokio::test]
async fn run_over_ssh_sends_neither_environment_nor_files_of_this_machine() {
    let daemon = TestDaemon::builder()
        .config("[permissions]\nallow_bypass = true\nallow_bypass_as_root = true\n")
        .start()
        .await;
    let ssh = FakeSsh::install(&daemon);
    daemon.models.push(Step::calls([bash("echo tz=${TZ:-none} named=${NAMED:-none}")]));
    daemon.models.push(Step::text("Done."));
    std::fs::write(daemon.workspace().join("poem.txt"), "roses").expect("written");
    let mut run = ssh.command(&["-H", HOST, "run", "-a", "yolo", "--env", "NAMED=1", "explain @poem.txt"]);
    run.envs([("TZ", "Europe/Berlin"), ("LC_ALL", "C"), ("LANG", "C"), ("OPENAI_API_KEY", "hush-hush")]);
    let said = ended(&daemon, run.spawn().expect("agentctl starts")).await;
    assert_eq!((said.code, said.out.as_str()), (0, "Done.\n"), "{said:?}");
    let asked = daemon.models.requests();
    let output = asked[1].messages().last().expect("a result").to_string();
    assert!(output.contains("tz=none named=1"), "{output}");
    let prompt = asked[0].messages().last().expect("a prompt").to_string();
    assert!(prompt.contains("@poem.txt") && !prompt.contains("roses"), "{prompt}");
    assert!(
        !said.err.contains("OPENAI_API_KEY"),
        "the daemon there is not restarted for a key of here: {said:?}"
    );
    for line in ssh.arguments().lines() {
        for part in [
            "-T -a -x ",
            "ClearAllForwardings=yes",
            "BatchMode=yes",
            "-p 2222 -- ann@build.example.com agentctl ",
        ] {
            assert!(line.contains(part), "{line}");
        }
        assert!(line.ends_with("daemon dial-stdio"), "{line}");
    }
    let environment = ssh.environment();
    assert!(environment.contains("PATH="), "{environment}");
    for name in ["LANG=", "LC_ALL=", "AGENTD_CONFIG=", "AGENTD_SSH="] {
        assert!(!environment.lines().any(|line| line.starts_with(name)), "{name}: {environment}");
    }
}

#[tokio::test]
async fn broken_connection_resumes_after_last_event_and_repeats_nothing() {
    let daemon = TestDaemon::start().await;
    let ssh = FakeSsh::install(&daemon);
    let gates = [Gate::new(), Gate::new()];
    let mut answer = Step::text("one two three four");
    for (nth, gate) in gates.iter().enumerate() {
        answer = answer.hold_after(nth + 1, gate);
    }
    daemon.models.push(answer);
    let mut child =
        ssh.command(&["-H", HOST, "run", "-o", "stream-json", "count"]).spawn().expect("agentctl starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut seqs: Vec<u64> = Vec::new();
    let (mut text, mut has_answer) = (String::new(), false);
    for gate in gates.iter().map(Some).chain([None]) {
        let part = async {
            while let Some(line) = lines.next_line().await.expect("a line") {
                let line: Value = serde_json::from_str(&line).expect("JSON");
                seqs.extend(line["seq"].as_u64());
                has_answer |=
                    line["type"] == "message.completed" && line.to_string().contains("one two three four");
                if line["type"] == "message.text_delta" {
                    text += line["text"].as_str().expect("text");
                    if gate.is_some() {
                        return;
                    }
                }
            }
        };
        with_deadline("the next words", || daemon.log(), part).await;
        if let Some(gate) = gate {
            assert!(ssh.cut() >= 2, "calls and events have connections of their own");
            gate.open();
        }
    }
    let said = ended(&daemon, child).await;
    assert_eq!(said.code, 0, "{said:?}");
    // Deltas that were pruned meanwhile are in the complete message.
    assert!("one two three four".starts_with(&text) && text.starts_with("one two ") && has_answer, "{text}");
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
    assert!(ssh.arguments().contains("daemon dial-stdio --after-crash"), "{}", ssh.arguments());
}

#[tokio::test]
async fn daemon_is_started_there_unless_a_user_stopped_it() {
    let daemon = TestDaemon::builder().build().await;
    let config = daemon.path("config.toml");
    let ssh = FakeSsh::with(&daemon, &format!("export AGENTD_CONFIG={}", config.display()));
    let said = ssh.ctl(&["-H", HOST, "--no-start", "ps"]).await;
    assert!(said.code == 69 && said.err.contains("no daemon answers on ann@build.example.com"), "{said:?}");
    let _stopper = crate::scenarios::agentctl::DaemonStopper(&daemon);
    assert_eq!(ssh.ctl(&["-H", HOST, "ps", "--json"]).await.json(), json!([]));
    ctl(&daemon, &["daemon", "stop", "--now"]).await.stdout();
    let said = ssh.ctl(&["-H", HOST, "daemon", "status"]).await;
    assert_eq!(said.code, 69, "status starts no daemon: {said:?}");
}

#[tokio::test]
async fn dial_ends_when_either_side_closes() {
    let mut daemon = TestDaemon::start().await;
    let dial = |daemon: &TestDaemon| {
        let mut command = crate::scenarios::agentctl::command(daemon, &["daemon", "dial-stdio"]);
        command.stdin(Stdio::piped()).spawn().expect("agentctl starts")
    };
    for requests in ["", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.subscribe\",\"params\":{}}\n"] {
        let mut child = dial(&daemon);
        let mut input = child.stdin.take().expect("piped");
        tokio::io::AsyncWriteExt::write_all(&mut input, requests.as_bytes()).await.expect("written");
        drop(input);
        let said = ended(&daemon, child).await;
        assert_eq!(said.code, 0, "the input ends: {said:?}");
        assert_eq!(said.out.lines().count(), requests.lines().count(), "it is answered: {said:?}");
    }
    let mut child = dial(&daemon);
    let input = child.stdin.take();
    // It is connected once the daemon has refused a line.
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut input = input.expect("piped");
    tokio::io::AsyncWriteExt::write_all(&mut input, b"x\n").await.expect("written");
    let refused = with_deadline("a reply", || daemon.log(), lines.next_line()).await.expect("read");
    assert!(refused.is_some_and(|line| line.contains("-32700")));
    daemon.kill().await;
    assert_eq!(ended(&daemon, child).await.code, 0, "the daemon ends");
}

#[tokio::test]
async fn interrupt_from_terminal_aborts_the_turn_and_spares_the_connection() {
    let daemon = TestDaemon::start().await;
    let ssh = FakeSsh::install(&daemon);
    let gate = Gate::new();
    daemon.models.push(Step::text("one two three").hold_after(1, &gate));
    let mut run = ssh.command(&["-H", HOST, "run", "-o", "stream-json", "count"]);
    let mut child = run.process_group(0).spawn().expect("agentctl starts");
    let group =
        nix::unistd::Pid::from_raw(i32::try_from(child.id().expect("it runs")).expect("a process id"));
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut wait_for = async |kind: &str| {
        let kind = format!("\"{kind}\"");
        let found = async {
            while let Some(line) = lines.next_line().await.expect("a line") {
                if line.contains(&kind) {
                    return;
                }
            }
            panic!("no {kind}");
        };
        with_deadline(&kind, || daemon.log(), found).await;
    };
    wait_for("message.text_delta").await;
    // As Ctrl-C does it: all processes of the foreground get the signal.
    nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGINT).expect("sent");
    wait_for("turn.completed").await;
    gate.open();
    assert_eq!(ended(&daemon, child).await.code, 3);
    assert_eq!(ssh.arguments().lines().count(), 2, "no connection broke: {}", ssh.arguments());
}
