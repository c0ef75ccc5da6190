//! `agentctl diff`: the file changes of a session.

use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::summary;
use api::methods;
use api::params::{DiffParams, SessionParams, WorktreeDiffParams};
use types::ids::SessionId;
use types::session::{ChangeKind, FileDiff};

pub(crate) async fn diff(
    reach: &Connector,
    name: &str,
    json: bool,
    stat: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let session_id = resolve_id::session(&client, name).await?.session_id;
    let reply = client.call::<methods::session::Get>(&SessionParams { session_id }).await?;
    if reply.session.details.is_some_and(|details| details.worktree.is_some()) {
        // In a worktree, also the changes of commands are known.
        let params = WorktreeDiffParams { session_id: Some(session_id), ..WorktreeDiffParams::default() };
        return worktree_diff(&client, &params, json, stat, out).await;
    }
    let files = all(&client, session_id).await?;
    if json {
        return Ok(out.json(&files)?);
    }
    if files.is_empty() {
        return Ok(out.note(
            "its file tools changed no files, or they are as they were; what commands changed is not known",
        )?);
    }
    for file in &files {
        out.line(&head(file))?;
        if stat {
            continue;
        }
        for line in summary::diff(&file.diff) {
            out.line(&line)?;
        }
        if !file.exact {
            let notice = "    not the whole change: another program changed the file too, or a diff was too long to keep";
            out.line(&StyledLine::new(Tone::Dim, notice))?;
        }
    }
    out.note("what commands (Bash) changed is not in it")?;
    Ok(())
}

/// Prints the changes of a worktree.
pub(crate) async fn worktree_diff(
    client: &Client,
    params: &WorktreeDiffParams,
    json: bool,
    stat: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let changes = client.call::<methods::worktree::Diff>(params).await?;
    if json {
        return Ok(out.json(&changes)?);
    }
    for file in &changes.files {
        let line = StyledLine::new(Tone::Bold, escape::line(&file.path).into_owned())
            .and(Tone::Good, format!(" +{}", file.insertions))
            .and(Tone::Bad, format!(" −{}", file.deletions));
        out.line(&line)?;
    }
    if changes.files.is_empty() {
        return Ok(out.note("nothing has changed in the worktree")?);
    }
    if stat {
        return Ok(());
    }
    for line in summary::diff(&changes.diff) {
        out.line(&line)?;
    }
    if changes.truncated {
        out.note(&format!(
            "the diff was cut; `git diff {} {}` shows all of it",
            changes.base, changes.branch
        ))?;
    }
    Ok(())
}

fn head(file: &FileDiff) -> StyledLine {
    let what = match file.change {
        ChangeKind::Created => "created ",
        ChangeKind::Modified => "modified",
        ChangeKind::Removed => "removed ",
    };
    let path = escape::line(&file.path.to_string_lossy()).into_owned();
    StyledLine::new(Tone::Dim, format!("{what} "))
        .and(Tone::Bold, path)
        .and(Tone::Good, format!(" +{}", file.added))
        .and(Tone::Bad, format!(" −{}", file.removed))
}

async fn all(client: &Client, session_id: SessionId) -> Result<Vec<FileDiff>, Failure> {
    let params = DiffParams { session_id, cursor: None, limit: None };
    Ok(client.all_rows::<methods::session::Diff>(params).await?)
}
