//! `agentctl trust` and `untrust`: show which files of a folder can run code and which programs they name, and trust
//! them.

use api::methods;
use std::path::Path;

use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::first_time::{ASKED_TRUST_FILE, is_first_time};
use crate::failure::Failure;
use crate::terminal::confirm::confirm;
use crate::terminal::escape;
use crate::terminal::out::{OutputStreams, terminal_columns};
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::choice::choose;
use crate::ui::render::untrusted_parts;
use api::params::{TrustParams, UntrustParams, WorkspaceParams};
use types::trust::TrustStatus;

/// Shows what trust would activate, and trusts the folder if the user confirms. Without `dir`, the
/// current folder.
pub(crate) async fn trust(
    reach: &Connector,
    dir: Option<&Path>,
    yes: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let cwd = folder(dir)?;
    let client = reach.connect_or_start().await?;
    let status: TrustStatus =
        client.call::<methods::workspace::Status>(&WorkspaceParams { cwd, count_changes: false }).await?;
    let name = escape::line(&status.cwd).into_owned();
    if status.trusted {
        return Ok(out.say(&format!("{name} is trusted already"))?);
    }
    show(&status, out)?;
    if !yes {
        confirm(&format!("Trust {name}?"), "--yes")?;
    }
    send_trust(&client, status).await?;
    Ok(out.say(&format!("{name} is trusted, as long as that stays as it is"))?)
}

/// Revokes the trust in a folder.
pub(crate) async fn untrust(
    reach: &Connector,
    dir: Option<&Path>,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let cwd = folder(dir)?;
    let client = reach.connect_or_start().await?;
    let _: TrustStatus = client
        .call::<methods::workspace::Untrust>(&UntrustParams { cwd: cwd.clone(), idempotency_key: None })
        .await?;
    Ok(out.say(&format!("{} is not trusted any more", escape::line(&cwd)))?)
}

/// For `run --trust`: trusts the folder's current content and prints what that activates.
pub(crate) async fn trust_now(client: &Client, cwd: String, out: &mut OutputStreams) -> Result<(), Failure> {
    let status: TrustStatus =
        client.call::<methods::workspace::Status>(&WorkspaceParams { cwd, count_changes: false }).await?;
    if status.trusted {
        return Ok(());
    }
    for part in status.parts.iter().chain(&status.programs) {
        out.note(&format!("trusted: {}", escape::line(part)))?;
    }
    send_trust(client, status).await
}

/// The answers to the question. "Not now" is preselected.
const OPTIONS: [&str; 2] = ["Trust it as it is now", "Not now; sessions work without it"];

/// Maximum number of programs that the question lists; further ones are counted.
const SHOWN_PROGRAMS: usize = 6;

/// The parts that trust would activate. Only the client's own text begins at the start of a row.
fn question(cwd: &str, parts: &[&String], programs: &[String], columns: usize) -> Vec<StyledLine> {
    let room = columns.saturating_sub(6).max(8);
    let block = |tone: Tone, text: String, first: &'static str| {
        StyledLine::new(tone, text)
            .wrap(room)
            .into_iter()
            .enumerate()
            .map(move |(nth, row)| row.with_lead(Tone::Warn, if nth == 0 { first } else { "▌     " }))
    };
    let head =
        block(Tone::Bold, format!("{} is not trusted yet. Trust makes active:", escape::line(cwd)), "▌ ");
    let listed = |text: &String| block(Tone::Plain, escape::line(text).into_owned(), "▌   ");
    let parts = parts.iter().flat_map(|part| listed(part));
    let more = programs.len().saturating_sub(SHOWN_PROGRAMS);
    let more = (more > 0).then(|| format!("and {more} more programs: `agentctl trust` lists them"));
    let programs = programs.iter().take(SHOWN_PROGRAMS).flat_map(listed);
    head.chain(parts).chain(programs).chain(more.iter().flat_map(listed)).collect()
}

/// On a terminal, asks once per folder whether to trust it. Sessions work without trust. If the only parts
/// that need trust are git facts, the user is not asked.
pub(crate) async fn ask_once(
    reach: &Connector,
    client: &Client,
    cwd: &str,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let params = WorkspaceParams { cwd: cwd.to_owned(), count_changes: false };
    let status: TrustStatus = client.call::<methods::workspace::Status>(&params).await?;
    let parts = untrusted_parts(&status.parts);
    let file = reach.record_file(ASKED_TRUST_FILE);
    if status.trusted || parts.is_empty() || !is_first_time(&file, &status.cwd) {
        return Ok(());
    }
    let name = escape::line(&status.cwd).into_owned();
    for line in question(&status.cwd, &parts, &status.programs, terminal_columns()) {
        out.line(&line)?;
    }
    let chosen = choose(&OPTIONS, 1).await?;
    if chosen == Some(0) {
        send_trust(client, status).await?;
        return Ok(out.note(&format!("{name} is trusted, as long as that stays as it is"))?);
    }
    Ok(out.note("not trusted; `agentctl trust` shows it again")?)
}

async fn send_trust(client: &Client, status: TrustStatus) -> Result<(), Failure> {
    let params = TrustParams { cwd: status.cwd, digest: Some(status.digest), idempotency_key: None };
    let _: TrustStatus = client.call::<methods::workspace::Trust>(&params).await?;
    Ok(())
}

fn show(status: &TrustStatus, out: &mut OutputStreams) -> Result<(), Failure> {
    let name = escape::line(&status.cwd);
    if status.parts.is_empty() {
        return Ok(
            out.say(&format!("{name} holds nothing that needs trust; what is added later asks again"))?
        );
    }
    if let Some(root) = status.project_root.as_ref().filter(|root| **root != status.cwd) {
        out.say(&format!("{name} is in the project {}.", escape::line(root)))?;
    }
    out.say(&format!("With trust in {name} these become active:"))?;
    for part in &status.parts {
        out.line(&StyledLine::new(Tone::Bold, format!("  {}", escape::line(part))))?;
    }
    if !status.programs.is_empty() {
        out.say("Programs that would run:")?;
    }
    for program in &status.programs {
        out.line(&StyledLine::new(Tone::Plain, format!("  {}", escape::line(program))))?;
    }
    Ok(())
}

fn folder(dir: Option<&Path>) -> Result<String, Failure> {
    let path = match dir {
        Some(dir) => std::path::absolute(dir)?,
        None => crate::connection::paths::current_folder()?,
    };
    path.to_str().map(String::from).ok_or_else(|| Failure::usage("the path is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use crate::commands::trust::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::terminal::out::testing::captured_output;
    use crate::ui::choice;
    use crate::ui::screen_files::check_screen;
    use serde_json::json;
    use std::io::{IsTerminal as _, stdin};

    #[tokio::test]
    async fn trust_shows_parts_then_sends_their_digest() {
        let fake = FakeDaemon::start(|_, method, params| match method {
            "workspace.status" => {
                let parts = json!([".agentd/config.toml: allow Bash(\u{1b}[2Jmake)"]);
                let programs = json!([".mcp.json: MCP server a starts x\u{1b}[2J"]);
                Ok(
                    json!({"cwd": "/w", "trusted": false, "digest": "d1", "parts": parts, "programs": programs}),
                )
            }
            _ => {
                assert_eq!((method, &params["digest"]), ("workspace.trust", &json!("d1")));
                Ok(json!({"cwd": "/w", "trusted": true, "digest": "d1", "parts": []}))
            }
        });
        let (mut out, text, _) = captured_output();
        trust(&fake.connector(), Some(Path::new("/w")), true, &mut out).await.expect("trusted");
        let shown = text.text();
        assert!(shown.contains("MCP server a starts x"), "{shown}");
        assert!(shown.contains("make)") && shown.contains("is trusted, as long as"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }

    #[test]
    fn trust_question_screen_matches_fixture() {
        let parts = [
            ".agentd/config.toml: allow Bash(cargo test:*)".to_owned(),
            ".mcp.json (MCP servers: programs that sessions here start)".to_owned(),
        ];
        let programs = (0..8).map(|nth| {
            format!(
                ".mcp.json: MCP server files{nth} starts npx -y @example/server-files --root /w/shop --watch"
            )
        });
        let programs: Vec<String> = programs.collect();
        check_screen("trust", |(columns, _)| {
            let lines = question("/w/shop", &parts.iter().collect::<Vec<_>>(), &programs, columns);
            let choice = choice::lines(&OPTIONS, 1);
            lines.into_iter().chain(choice).map(|line| line.cut(columns)).collect()
        });
    }

    #[tokio::test]
    async fn trust_without_terminal_or_yes_is_refused() {
        let fake = FakeDaemon::start(|_, method, _| {
            assert_eq!(method, "workspace.status");
            Ok(json!({"cwd": "/w", "trusted": false, "digest": "d1", "parts": [".mcp.json"]}))
        });
        if stdin().is_terminal() {
            base::skip_test!("there is a terminal");
            return;
        }
        let (mut out, _, _) = captured_output();
        let failure = trust(&fake.connector(), None, false, &mut out).await.expect_err("refused");
        assert!(failure.message.contains("--yes"), "{failure}");
    }
}
