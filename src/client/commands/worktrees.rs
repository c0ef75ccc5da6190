//! `agentctl worktrees` and `agentctl merge`.

use crate::args::WorktreesCommand;
use crate::commands::jobs;
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::paths;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::format::{age, now};
use crate::terminal::out::OutputStreams;
use crate::terminal::style::Tone;
use crate::terminal::table::{Table, column};
use api::methods;
use api::params::{MergeMethod, WorktreeListParams, WorktreeMergeParams, WorktreeRemoveParams};
use types::ids::{JobId, SessionId};
use types::worktree::Worktree;

/// The start of the ids of jobs. All other names are those of sessions.
const JOB_PREFIX: &str = "job_";
/// Characters of a commit's id that are shown.
const SHORT_COMMIT: usize = 10;

pub(crate) async fn worktrees(
    reach: &Connector,
    what: Option<WorktreesCommand>,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    match what.unwrap_or(WorktreesCommand::Ls) {
        WorktreesCommand::Ls => list(reach, json, out).await,
        WorktreesCommand::Rm { owners, force } => remove(reach, &owners, force, out).await,
    }
}

/// Merges the branch of a worktree into the branch of its repository's folder.
pub(crate) async fn merge(
    reach: &Connector,
    owner: &str,
    commit: bool,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let (session_id, job_id) = owner_of(&client, owner).await?;
    let how = commit.then_some(MergeMethod::Commit);
    let params = WorktreeMergeParams { session_id, job_id, how, idempotency_key: None };
    let merged = client.call::<methods::worktree::Merge>(&params).await?;
    if json {
        return Ok(out.json(&merged)?);
    }
    let into = escape::line(&merged.into).into_owned();
    let commit = merged.commit.get(..SHORT_COMMIT).unwrap_or(&merged.commit);
    match merged.merged {
        true => out.say(&format!("{into} is now at {commit}"))?,
        false => out.note(&format!("{into} had all commits before"))?,
    }
    if merged.uncommitted > 0 {
        out.note(&format!(
            "{} files of the worktree are not committed and were left out",
            merged.uncommitted
        ))?;
    }
    Ok(())
}

async fn list(reach: &Connector, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let worktrees = client.call::<methods::worktree::List>(&WorktreeListParams {}).await?.worktrees;
    if json {
        return Ok(out.json(&worktrees)?);
    }
    if worktrees.is_empty() {
        return Ok(out.note("there is no worktree; `agentctl run --worktree` makes one")?);
    }
    let home = base::proc::variable("HOME");
    let mut table = Table::new([
        column("OWNER"),
        column("AGE").right(),
        column("STATE"),
        column("COMMITS").right(),
        column("BRANCH").between(12, 40),
        column("REPOSITORY").between(8, 40).keep_end(),
    ]);
    for worktree in &worktrees {
        let owner = worktree.job_id.map(|id| id.to_string());
        let owner = owner.or_else(|| worktree.session_id.map(|id| id.to_string()));
        let commits = worktree.commits.map_or_else(|| "?".to_owned(), |count| count.to_string());
        let repository = paths::short(&worktree.repository, home.as_deref());
        table.push([
            (Tone::Bold, owner.unwrap_or_default()),
            (Tone::Dim, age(now().since(worktree.created_at_ms))),
            (Tone::Plain, state(worktree).to_owned()),
            (Tone::Plain, commits),
            (Tone::Plain, escape::line(&worktree.branch).into_owned()),
            (Tone::Dim, escape::line(&repository).into_owned()),
        ]);
    }
    table.print(out)
}

fn state(worktree: &Worktree) -> &'static str {
    match (worktree.in_use, worktree.uncommitted) {
        (true, _) => "in use",
        (false, Some(true)) => "uncommitted",
        (false, Some(false)) => "free",
        (false, None) => "unreadable",
    }
}

async fn remove(
    reach: &Connector,
    owners: &[String],
    force: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    for name in owners {
        let (session_id, job_id) = owner_of(&client, name).await?;
        let params = WorktreeRemoveParams { session_id, job_id, force, idempotency_key: None };
        client.call::<methods::worktree::Remove>(&params).await?;
        out.say(name)?;
    }
    Ok(())
}

/// The job or the session with this name. A deleted session may still have a worktree.
async fn owner_of(client: &Client, name: &str) -> Result<(Option<SessionId>, Option<JobId>), Failure> {
    if name.starts_with(JOB_PREFIX) {
        return Ok((None, Some(jobs::resolve(client, name).await?)));
    }
    if let Ok(id) = name.parse::<SessionId>() {
        return Ok((Some(id), None));
    }
    Ok((Some(resolve_id::session(client, name).await?.session_id), None))
}
