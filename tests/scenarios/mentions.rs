//! `@file` in a prompt: the content goes along if a person typed the text, and only then.

use tokio::io::AsyncWriteExt as _;

use super::agentctl::{command, ctl, ended};
use super::agentctl_prompt::Terminal;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

fn write_file(daemon: &TestDaemon, name: &str, text: &str) {
    std::fs::write(daemon.workspace().join(name), text).expect("written");
}

/// The newest user message that the model received, as JSON.
fn last_message(daemon: &TestDaemon) -> String {
    let request = daemon.models.requests().pop().expect("a request");
    request.messages().last().expect("a message").to_string()
}

#[tokio::test]
async fn typed_mentions_attach_content_and_likely_secret_asks_first() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Read."));
    write_file(&daemon, "poem.txt", "first line\nsecond line\nthird line\n");
    write_file(&daemon, ".env", "TOKEN=hush-hush\n");
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut terminal = Terminal::start(&daemon, &["attach", &session.id]);
    terminal.shows("detaches").await;
    terminal.keys("explain @poem.txt#L2-3, please\r").await;
    terminal.shows("Read.").await;
    let message = last_message(&daemon);
    assert!(message.contains("poem.txt#L2-3") && message.contains("third line"), "{message}");
    assert!(!message.contains("first line"), "{message}");
    // Lines that the file does not have are named, and the text comes back.
    terminal.keys("explain @poem.txt#L9\r").await;
    terminal.shows("it has 3 lines").await;
    terminal.keys("\u{3}").await;
    terminal.shows("cleared").await;
    for (answer, is_sent) in [("n", false), ("y", true)] {
        terminal.keys("check @.env\r").await;
        terminal.shows("probably holds secrets").await;
        terminal.keys(answer).await;
        terminal.shows("Read.").await;
        assert_eq!(last_message(&daemon).contains("hush-hush"), is_sent, "{answer}");
    }
    // A dropped file is pasted as its path.
    let path = daemon.workspace().join("poem.txt");
    terminal.keys(&format!("\u{1b}[200~'{}'\u{1b}[201~", path.display())).await;
    terminal.shows("@poem.txt").await;
    terminal.keys("what is it?\r").await;
    terminal.shows("Read.").await;
    assert!(last_message(&daemon).contains("first line"));
}

#[tokio::test]
async fn mentions_in_pipes_and_scripts_attach_nothing() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    write_file(&daemon, "poem.txt", "first line\n");
    let said = ctl(&daemon, &["run", "explain @poem.txt"]).await;
    assert!(said.code == 0 && said.err.contains("--file attaches one"), "{said:?}");
    assert!(!last_message(&daemon).contains("first line"));
    for args in [&["run"][..], &["run", "-"]] {
        let mut child = command(&daemon, args).stdin(std::process::Stdio::piped()).spawn().expect("started");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(b"explain @poem.txt").await.expect("written");
        drop(input);
        let said = ended(&daemon, child).await;
        assert!(said.code == 0 && !said.err.contains("--file"), "{said:?}");
        let message = last_message(&daemon);
        assert!(message.contains("@poem.txt") && !message.contains("first line"), "{message}");
    }
    // Lines that another program writes into `attach`.
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut child = command(&daemon, &["attach", &session.id])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"explain @poem.txt\n").await.expect("written");
    drop(input);
    let said = ended(&daemon, child).await;
    assert_eq!(said.code, 0, "{said:?}");
    let message = last_message(&daemon);
    assert!(message.contains("@poem.txt") && !message.contains("first line"), "{message}");
}
