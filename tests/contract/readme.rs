//! The commands in the README work as they are written.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;
use crate::support::raw::RawConnection;
use crate::support::wait::with_deadline;

fn readme() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    std::fs::read_to_string(file).expect("a README")
}

/// The text of a section, up to the next heading of the same level.
fn section<'a>(readme: &'a str, title: &str) -> &'a str {
    let heading = format!("\n## {title}\n");
    let start = readme.find(&heading).unwrap_or_else(|| panic!("no section {title:?}")) + heading.len();
    let end = readme[start..].find("\n## ").map_or(readme.len(), |at| start + at);
    &readme[start..end]
}

/// The contents of the fenced code blocks in this language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap_or(rest)).collect()
}

/// Reads messages until `is_wanted` accepts one.
async fn read_to(raw: &mut RawConnection, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let read = async {
        loop {
            let message = raw.next().await.expect("the daemon hung up");
            if is_wanted(&message) {
                return message;
            }
        }
    };
    with_deadline(what, String::new, read).await
}

#[tokio::test]
async fn readme_editor_commands_work_one_by_one() {
    let readme = readme();
    let lines: Vec<&str> = blocks(section(&readme, "Attach an editor"), "json")[0].lines().collect();
    assert_eq!(lines.len(), 5, "{lines:#?}");
    let daemon = TestDaemon::start().await;
    daemon.models.push(Step::calls([("Bash", json!({"command": "touch mended"}))]));
    daemon.models.push(Step::text("Mended."));
    let workspace = daemon.workspace();
    let mut raw = daemon.raw().await;
    let mut pending = Value::Null;
    for line in lines {
        let call: Value = serde_json::from_str(line).expect("a call");
        let mut line = line.replace("/tmp/project", workspace.to_str().expect("text"));
        if call["method"] == "permission.list" {
            // Wait for the request first: a user sees it before running the command that lists it.
            read_to(&mut raw, "the question", |m| m["params"]["result"]["type"] == "permission.requested")
                .await;
        }
        if call["method"] == "session.approve" {
            line = line.replace("perm_…", pending.as_str().expect("the reply before lists a request"));
        }
        raw.line(&line).await;
        let reply = read_to(&mut raw, &line, |message| message["id"] == call["id"]).await;
        assert!(reply.get("result").is_some(), "{line}\n{reply:#}");
        if call["method"] == "permission.list" {
            pending = reply["result"]["requests"][0]["request_id"].clone();
        }
    }
    let ended =
        read_to(&mut raw, "the end", |message| message["params"]["result"]["type"] == "turn.completed").await;
    assert_eq!(ended["params"]["result"]["result"]["text"], "Mended.");
    assert!(workspace.join("mended").exists());
    daemon.models.assert_no_breach();
}

#[test]
fn readme_commands_exist_in_agentctl() {
    let readme = readme();
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let mut named: Vec<Vec<&str>> = blocks(&readme, "sh")
        .into_iter()
        .flat_map(|block| block.split("agentctl ").skip(1))
        .map(|rest| rest.lines().next().unwrap_or(rest).split(' ').take_while(is_word).take(2).collect())
        .collect();
    // Commands in running text, for example `agentctl daemon stop`.
    let inline = readme.split("`agentctl ").skip(1);
    named.extend(inline.map(|rest| {
        let end = rest.find('`').unwrap_or(rest.len());
        rest[..end].split(' ').take_while(is_word).take(2).collect::<Vec<_>>()
    }));
    named.sort_unstable();
    named.dedup();
    assert!(named.len() >= 8, "{named:?}");
    for words in named {
        // Only `daemon` has subcommands; the words after any other command are arguments.
        let words = if words.first() == Some(&"daemon") { &words[..] } else { &words[..1] };
        let help = Command::new(env!("CARGO_BIN_EXE_agentctl"))
            .args(words)
            .arg("--help")
            .stdin(Stdio::null())
            .output()
            .expect("agentctl starts");
        assert!(help.status.success(), "agentctl {words:?}: {}", String::from_utf8_lossy(&help.stderr));
        let usage = format!("Usage: agentctl {}", words.join(" "));
        assert!(String::from_utf8_lossy(&help.stdout).contains(&usage), "{words:?}");
    }
}
