//! What `agentctl` takes from its standard input: piped text beside a task, and keys in a terminal.

use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::agentctl::{command, ctl, ended, ps_shows};
use crate::support::daemon::House;
use crate::support::model_server::Step;

#[tokio::test]
async fn piped_input_becomes_a_second_block_of_the_task() {
    let house = House::start().await;
    house.models.otherwise(|_| Step::text("Done."));
    let piped = async |args: &[&str], text: &'static [u8]| {
        let mut child = command(&house, args).stdin(Stdio::piped()).spawn().expect("agentctl starts");
        child.stdin.take().expect("piped").write_all(text).await.expect("read");
        ended(&house, child).await
    };
    let session =
        piped(&["run", "--output", "json", "review"], b"+a\n-b\n").await.json()["session_id"].clone();
    let session = session.as_str().expect("an id");
    piped(&["submit", session, "and this"], b"+c\n").await.fine();
    ps_shows(&house, session, "idle").await;
    let id = piped(&["run", "--background", "look"], b"+d\n").await.fine();
    ps_shows(&house, id.trim_end(), "idle").await;
    ctl(&house, &["run", "alone"]).await.fine();
    piped(&["run", "empty"], b"").await.fine();
    let asked = house.models.requests();
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
async fn idle_pipe_is_left_out_and_slow_pipeline_is_waited_for() {
    let house = House::start().await;
    house.models.otherwise(|_| Step::text("Done."));
    // Held open by the program that starts `agentctl`.
    let mut child = command(&house, &["run", "go"]).stdin(Stdio::piped()).spawn().expect("agentctl starts");
    let held = child.stdin.take();
    let said = ended(&house, child).await;
    assert!(said.code == 0 && said.err.contains("standard input is open"), "{said:?}");
    drop(held);
    // A program before it that needs longer than a silent pipe is waited for.
    let prepared = command(&house, &[]);
    let mut shell = Command::new("bash");
    shell
        .args(["-c", "{ sleep 3; echo late; } | \"$0\" run review", env!("CARGO_BIN_EXE_agentctl")])
        .env_clear()
        .envs(prepared.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(house.workspace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let said = ended(&house, shell.spawn().expect("bash starts")).await;
    assert!(said.code == 0 && said.err.contains("reading standard input until it ends"), "{said:?}");
    let last = |n: usize| house.models.requests()[n].messages().last().expect("a message").to_string();
    assert!(last(0).contains("\"go\"") && last(1).contains("review\\nlate"), "{} {}", last(0), last(1));
}
