//! `agentctl run -q` into a file: whatever happens on the way, the file holds exactly what `agentctl result` prints.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::process::Child;

use super::agentctl::{DaemonStopper, command, ctl};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::with_deadline;

const FILE: &str = "answer.txt";

/// Starts `agentctl run -q` with its output in a file.
fn start(daemon: &TestDaemon) -> Child {
    let file = std::fs::File::create(daemon.workspace().join(FILE)).expect("a file");
    let mut run = command(daemon, &["run", "-q", "go"]);
    run.stdout(file).stderr(Stdio::null()).spawn().expect("agentctl starts")
}

/// Waits for the end, and compares the file with the expected text and with the bytes of `agentctl result`.
async fn check(daemon: &TestDaemon, mut run: Child, expected: &str) {
    let status = with_deadline("agentctl to end", || daemon.log(), run.wait()).await.expect("waited");
    assert!(status.success(), "{status}\n{}", daemon.log());
    let written = std::fs::read(daemon.workspace().join(FILE)).expect("a file");
    let result = command(daemon, &["result", "."]).output().await.expect("agentctl starts");
    assert!(result.status.success(), "{result:?}");
    assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(&result.stdout));
    assert_eq!(written, result.stdout);
    assert_eq!(String::from_utf8_lossy(&written), expected);
}

/// The first characters of each kind: of controls, of format characters, of every plane and of every width in UTF-8.
fn every_kind_of_character() -> String {
    let named = [
        "nul\0 bell\u{7} back\u{8}space esc\u{1b}[31mred\u{1b}[0m del\u{7f} nel\u{85} c1\u{9b}31m",
        "cr\rcrlf\r\ntab\tvt\u{b}ff\u{c}ls\u{2028}ps\u{2029}nbsp\u{a0}",
        "family 👨\u{200d}👩\u{200d}👧 flag 🇩🇪 tone 👍🏽 heart ❤\u{fe0f} tag \u{e0041}",
        "می\u{200c}خواهم so\u{ad}ft zw\u{200b}sp bom\u{feff} word\u{2060}joiner",
        "bidi \u{202e}abc\u{202c} \u{2066}x\u{2069} \u{200f}",
        "comb e\u{301} hangul \u{1112}\u{1161}\u{11ab} ⟦U+200D⟧ \u{fffd}",
        "private \u{e000} \u{f0000} \u{10ffff} nonchar \u{fffe} \u{fdd0} \u{1ffff}",
    ];
    let starts = (0..=0x10).map(|plane| plane * 0x1_0000).chain((0..0x3000).step_by(0x80));
    let blocks: String = starts.filter_map(char::from_u32).collect();
    format!("  {}\n{blocks}\n  blanks at the end  \n\n", named.join("\n"))
}

#[tokio::test]
async fn file_of_quiet_run_equals_result_for_every_kind_of_character() {
    let daemon = TestDaemon::start().await;
    let text = every_kind_of_character();
    let letters: Vec<char> = text.chars().collect();
    daemon.models.push(Step::pieces(letters.chunks(3).map(|part| part.iter().collect::<String>())));
    check(&daemon, start(&daemon), &text).await;
    // Blanks alone, and an answer whose last message has no text.
    daemon.models.push(Step::text(" \n "));
    check(&daemon, start(&daemon), " \n \n").await;
    daemon.models.push(Step::calls([("LS", json!({"path": "."}))]).say("I look."));
    daemon.models.push(Step::text(""));
    check(&daemon, start(&daemon), "").await;
}

#[tokio::test]
async fn file_of_quiet_run_equals_result_after_cut_stream_and_output_limit() {
    let daemon = TestDaemon::builder().config("[retry]\nbase_ms = 1\nmax_ms = 2").start().await;
    for bytes in [400, 700, 1_000] {
        daemon
            .models
            .push(Step::text("half of an answer that is never complete 👨\u{200d}👩").cut_after(bytes));
        daemon.models.push(Step::text("The whole answer."));
        check(&daemon, start(&daemon), "The whole answer.\n").await;
    }
    daemon.models.push(Step::text("The first half, ").stop("max_tokens"));
    daemon.models.push(Step::text("the second half."));
    check(&daemon, start(&daemon), "The first half, the second half.\n").await;
}

#[tokio::test]
async fn file_of_quiet_run_equals_result_after_kill_of_daemon() {
    let daemon = TestDaemon::builder().build().await;
    let _stop = DaemonStopper(&daemon);
    let gate = Gate::new();
    daemon.models.push(Step::text("one two three four").hold_after(2, &gate));
    let run = start(&daemon);
    gate.wait_reached().await;
    let status = ctl(&daemon, &["--no-start", "daemon", "status", "--json"]).await.json();
    let pid = status["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a pid");
    daemon.models.push(Step::text("The answer of the second daemon."));
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("killed");
    check(&daemon, run, "The answer of the second daemon.\n").await;
}
