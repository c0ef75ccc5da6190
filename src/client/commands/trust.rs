//! `agentctl trust` and `untrust`: show which files of a folder can run code, and trust them.

use std::path::Path;

use crate::api::params::{TrustParams, UntrustParams, WorkspaceParams, WorkspaceReply};
use crate::client::connection::client::Client;
use crate::client::connection::connector::Connector;
use crate::client::failure::Failure;
use crate::client::terminal::confirm::confirm;
use crate::client::terminal::escape;
use crate::client::terminal::out::Out;
use crate::client::terminal::style::{Line, Tone};
use crate::client::ui::choice::choose;

/// Shows what trust would activate, and trusts the folder if the user confirms. Without `dir`, the
/// current folder.
pub(in crate::client) async fn trust(
    reach: &Connector,
    dir: Option<&Path>,
    yes: bool,
    out: &mut Out,
) -> Result<(), Failure> {
    let cwd = folder(dir)?;
    let client = reach.connect_or_start().await?;
    let found: WorkspaceReply = client.call("workspace.status", &WorkspaceParams { cwd }).await?;
    let name = escape::line(&found.cwd).into_owned();
    if found.trusted {
        return Ok(out.say(&format!("{name} is trusted already"))?);
    }
    show(&found, out)?;
    if !yes {
        confirm(&format!("Trust {name}?"), "--yes")?;
    }
    give(&client, found).await?;
    Ok(out.say(&format!("{name} is trusted, as long as that stays as it is"))?)
}

/// Revokes the trust in a folder.
pub(in crate::client) async fn untrust(
    reach: &Connector,
    dir: Option<&Path>,
    out: &mut Out,
) -> Result<(), Failure> {
    let cwd = folder(dir)?;
    let client = reach.connect_or_start().await?;
    let _: WorkspaceReply =
        client.call("workspace.untrust", &UntrustParams { cwd: cwd.clone(), idempotency_key: None }).await?;
    Ok(out.say(&format!("{} is not trusted any more", escape::line(&cwd)))?)
}

/// For `run --trust`: trusts the folder's current content and prints what that activates.
pub(in crate::client) async fn at_once(client: &Client, cwd: String, out: &mut Out) -> Result<(), Failure> {
    let found: WorkspaceReply = client.call("workspace.status", &WorkspaceParams { cwd }).await?;
    if found.trusted {
        return Ok(());
    }
    for part in &found.parts {
        out.note(&format!("trusted: {}", escape::line(part)))?;
    }
    give(client, found).await
}

/// File with the folders whose trust was asked about, one in each line.
const ASKED: &str = "asked-trust";
/// Bytes of that file after which the oldest half is forgotten: those folders are asked about once more.
const MAX_ASKED_BYTES: usize = 64 << 10;

/// Asks once per folder, on a terminal, whether to trust it. Sessions work without trust. A folder whose only parts are
/// git facts is not worth a question.
pub(in crate::client) async fn ask_once(
    reach: &Connector,
    client: &Client,
    cwd: &str,
    out: &mut Out,
) -> Result<(), Failure> {
    let params = WorkspaceParams { cwd: cwd.to_owned() };
    let found: WorkspaceReply = client.call("workspace.status", &params).await?;
    let parts: Vec<&String> = found.parts.iter().filter(|part| !part.starts_with("git facts")).collect();
    let file = reach.places.data_dir.join(ASKED);
    if found.trusted || parts.is_empty() || !note_asked(&file, &found.cwd) {
        return Ok(());
    }
    let name = escape::line(&found.cwd).into_owned();
    out.line(
        &Line::new(Tone::Warn, "▌ ")
            .and(Tone::Bold, format!("{name} is not trusted yet. Trust makes active:")),
    )?;
    for part in &parts {
        out.line(&Line::new(Tone::Warn, "▌   ").and(Tone::Plain, escape::line(part).into_owned()))?;
    }
    let chosen = choose(&["Trust it as it is now", "Not now; sessions work without it"], 1).await?;
    if chosen == Some(0) {
        give(client, found).await?;
        return Ok(out.note(&format!("{name} is trusted, as long as that stays as it is"))?);
    }
    Ok(out.note("not trusted; `agentctl trust` shows it again")?)
}

/// Records that the folder was asked about. False if it was before, or if that cannot be recorded: then the question
/// would come again and again.
fn note_asked(file: &Path, cwd: &str) -> bool {
    let known = std::fs::read_to_string(file).unwrap_or_default();
    if known.lines().any(|line| line == cwd) || cwd.contains('\n') {
        return false;
    }
    let kept = if known.len() > MAX_ASKED_BYTES {
        &known[known.floor_char_boundary(known.len() / 2)..]
    } else {
        &known
    };
    std::fs::write(file, format!("{kept}{cwd}\n")).is_ok()
}

async fn give(client: &Client, found: WorkspaceReply) -> Result<(), Failure> {
    let params = TrustParams { cwd: found.cwd, digest: Some(found.digest), idempotency_key: None };
    let _: WorkspaceReply = client.call("workspace.trust", &params).await?;
    Ok(())
}

fn show(found: &WorkspaceReply, out: &mut Out) -> Result<(), Failure> {
    let name = escape::line(&found.cwd);
    if found.parts.is_empty() {
        return Ok(
            out.say(&format!("{name} holds nothing that needs trust; what is added later asks again"))?
        );
    }
    out.say(&format!("With trust in {name} these become active:"))?;
    for part in &found.parts {
        out.line(&Line::new(Tone::Bold, format!("  {}", escape::line(part))))?;
    }
    Ok(())
}

fn folder(dir: Option<&Path>) -> Result<String, Failure> {
    let path = match dir {
        Some(dir) => std::path::absolute(dir)?,
        None => crate::client::connection::paths::current_folder()?,
    };
    path.to_str().map(String::from).ok_or_else(|| Failure::usage("the path is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use crate::client::commands::trust::*;
    use crate::client::fake::Fake;
    use crate::client::terminal::out::testing::papers;
    use serde_json::json;
    use std::io::{IsTerminal as _, stdin};

    #[tokio::test]
    async fn trust_shows_parts_then_sends_their_digest() {
        let fake = Fake::start(|_, method, params| match method {
            "workspace.status" => {
                let parts = json!([".agentd/config.toml: allow Bash(\u{1b}[2Jmake)"]);
                Ok(json!({"cwd": "/w", "trusted": false, "digest": "d1", "parts": parts}))
            }
            _ => {
                assert_eq!((method, &params["digest"]), ("workspace.trust", &json!("d1")));
                Ok(json!({"cwd": "/w", "trusted": true, "digest": "d1", "parts": []}))
            }
        });
        let (mut out, text, _) = papers();
        trust(&fake.reach(), Some(Path::new("/w")), true, &mut out).await.expect("trusted");
        let shown = text.text();
        assert!(shown.contains("make)") && shown.contains("is trusted, as long as"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }

    #[test]
    fn folder_is_asked_about_only_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join(ASKED);
        assert!(note_asked(&file, "/w") && note_asked(&file, "/v"));
        assert!(!note_asked(&file, "/w"));
        assert!(!note_asked(&dir.path().join("missing/file"), "/w"), "it could not be recorded");
    }

    #[tokio::test]
    async fn trust_without_terminal_or_yes_is_refused() {
        let fake = Fake::start(|_, method, _| {
            assert_eq!(method, "workspace.status");
            Ok(json!({"cwd": "/w", "trusted": false, "digest": "d1", "parts": [".mcp.json"]}))
        });
        if stdin().is_terminal() {
            eprintln!("SKIPPED: there is a terminal");
            return;
        }
        let (mut out, _, _) = papers();
        let failure = trust(&fake.reach(), None, false, &mut out).await.expect_err("refused");
        assert!(failure.message.contains("--yes"), "{failure}");
    }
}
