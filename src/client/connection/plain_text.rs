//! Texts of `run` and `submit` that look like a note or a slash command and are meant as text.

use crate::connection::client::Client;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::methods;
use api::params::{CommandListParams, CommandListReply};

/// Maximum distance of a command's name that is suggested.
const MAX_DISTANCE: usize = 2;

/// Whether the text goes to the model as it is. A note would change files instead of asking the model, and an unknown
/// command would be refused. Says so on stderr. `place` names the session or the folder whose commands count.
pub(crate) async fn is_plain_text(
    client: &Client,
    text: &str,
    place: &CommandListParams,
    out: &mut OutputStreams,
) -> Result<bool, Failure> {
    if text.starts_with('#') {
        out.note("sent as text, although it begins with #; notes are for `agentctl attach`")?;
        return Ok(true);
    }
    let Some(name) = command_name(text) else { return Ok(false) };
    let reply: CommandListReply = client.call::<methods::command::List>(place).await?;
    if reply.commands.iter().any(|command| command.name == name) {
        return Ok(false);
    }
    let nearest = reply
        .commands
        .iter()
        .map(|command| (strsim::osa_distance(&command.name, name), &command.name))
        .min()
        .filter(|(distance, command)| *distance <= MAX_DISTANCE && *distance < command.chars().count());
    let hint =
        nearest.map(|(_, command)| format!("; did you mean /{}?", escape::line(command))).unwrap_or_default();
    out.note(&format!("sent as text: there is no command /{}{hint}", escape::line(name)))?;
    Ok(true)
}

/// The name of the slash command that the daemon would read at the beginning of the text.
fn command_name(text: &str) -> Option<&str> {
    let first = text.strip_prefix('/')?.split(char::is_whitespace).next()?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '-' | '.');
    (!first.is_empty() && first.chars().all(is_name)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::terminal::out::testing::captured_output;
    use serde_json::json;

    #[tokio::test]
    async fn notes_and_unknown_commands_are_text_and_known_commands_are_not() {
        let fake = FakeDaemon::start(|_, method, _| match method {
            "command.list" => Ok(json!({"commands": [
                {"name": "review", "description": "", "source": "user"},
                {"name": "compact", "description": "", "source": "built_in"}], "diagnostics": []})),
            other => Err(json!({"code": -32601, "message": other, "data": {"kind": "method_not_found"}})),
        });
        let client = fake.connector().connect().await.expect("connected");
        let cases = [
            ("# Fix the login", true, "begins with #"),
            ("#!/bin/sh explain this", true, "begins with #"),
            ("# one\ntwo", true, "begins with #"),
            ("/tmp explain", true, "no command /tmp"),
            ("/reviw a.rs", true, "did you mean /review?"),
            ("/review a.rs", false, ""),
            ("/compact", false, ""),
            ("/etc/passwd is what?", false, ""),
            ("/ is the root", false, ""),
            ("- list", false, ""),
            ("hello", false, ""),
        ];
        for (text, expected, hint) in cases {
            let (mut out, _, side) = captured_output();
            let is_text = is_plain_text(
                &client,
                text,
                &CommandListParams { cwd: Some("/w".into()), session_id: None },
                &mut out,
            )
            .await;
            assert_eq!(is_text, Ok(expected), "{text}");
            assert!(
                side.text().contains(hint) && side.text().is_empty() == hint.is_empty(),
                "{}",
                side.text()
            );
        }
    }
}
