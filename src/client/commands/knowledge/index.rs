//! `agentctl knowledge index`, `insert`, `cancel`.

use api::methods;
use std::io::{IsTerminal as _, stderr};
use std::path::{Path, PathBuf};

use tokio::signal::unix::{SignalKind, signal};

use super::Target;
use crate::CallError;
use crate::args::IndexArgs;
use crate::connection::stdin;
use crate::failure::Failure;
use crate::terminal::out::OutputStreams;
use crate::terminal::{escape, format};
use api::params::{
    IndexBudget, KnowledgeCancelParams, KnowledgeCancelReply, KnowledgeIndexParams, KnowledgeInsertParams,
    KnowledgeInsertReply, KnowledgeStatusParams, KnowledgeWorkParams,
};
use types::knowledge::{
    IndexEstimate, IndexProgress, IndexStage, IndexStatus, IndexSummary, InsertedDocument, KnowledgeEvent,
    StartedIndexJob,
};

/// Characters of a progress bar.
const BAR_WIDTH: u64 = 24;

pub(super) async fn index(target: &Target, args: IndexArgs, out: &mut OutputStreams) -> Result<(), Failure> {
    let budget = (args.budget.is_some() || args.budget_tokens.is_some())
        .then_some(IndexBudget::Limits { tokens: args.budget_tokens, usd: args.budget });
    let params = KnowledgeIndexParams {
        workspace: target.workspace.clone(),
        paths: (!args.paths.is_empty()).then_some(args.paths),
        level: args.level.map(Into::into),
        budget,
        dry_run: args.dry_run,
        idempotency_key: None,
    };
    let reply: StartedIndexJob = target.client.call::<methods::knowledge::Index>(&params).await?;
    let Some(job_id) = reply.job_id.clone() else {
        return if args.json { Ok(out.json(&reply)?) } else { Ok(out.say(&estimate_line(&reply.estimate))?) };
    };
    if args.detach {
        return if args.json { Ok(out.json(&reply)?) } else { Ok(out.say(&job_id)?) };
    }
    if !args.json {
        out.note(&estimate_line(&reply.estimate))?;
    }
    follow(target, job_id, args.json, out).await
}

/// Shows a job until it ends.
async fn follow(target: &Target, job_id: String, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let work = KnowledgeWorkParams {
        workspace: target.workspace.clone(),
        job_id: Some(job_id.clone()),
        query_id: None,
    };
    let mut events = target.client.follow_knowledge(&work).await?;
    let has_bar = !json && stderr().is_terminal();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut is_cancelling = false;
    loop {
        let event = tokio::select! {
            event = events.next() => event?,
            // The first signal stops the job and waits for its end, the second one exits at once.
            _ = interrupt.recv() => {
                if std::mem::replace(&mut is_cancelling, true) {
                    return Err(Failure::internal("left the job while it stops".to_owned()));
                }
                let _: KnowledgeCancelReply = cancel_job(target, &job_id).await?;
                continue;
            }
        };
        if json {
            let line = serde_json::to_string(&event).map_err(std::io::Error::other)?;
            out.say(&crate::terminal::out::harmless_json(&line))?;
        }
        match event {
            KnowledgeEvent::Progress { progress } if has_bar => out.prompt("", &bar(&progress))?,
            KnowledgeEvent::Done { summary, .. } => {
                if has_bar {
                    out.prompt("", "")?;
                }
                if let Some(summary) = summary.filter(|_| !json) {
                    out.say(&summary_line(&summary))?;
                    if let Some(warning) = &summary.warning {
                        out.note(&escape::line(warning))?;
                    }
                }
                return Ok(());
            }
            KnowledgeEvent::Failed { error, .. } => {
                return Err(Failure::internal(escape::text(&error.message).into_owned()));
            }
            KnowledgeEvent::Cancelled {} => {
                let text = "the job was cancelled; `agentctl knowledge index` continues it";
                return Err(Failure::internal(text.to_owned()));
            }
            _ => {}
        }
    }
}

fn estimate_line(estimate: &IndexEstimate) -> String {
    let mut line = format!(
        "{} files to read ({} KiB, about {} chunks), {} unchanged, {} gone",
        estimate.files,
        estimate.bytes / 1_024,
        estimate.chunks,
        estimate.unchanged,
        estimate.removed
    );
    if estimate.model_calls > 0 {
        let (tokens, money) = (format::tokens(estimate.tokens), format::money(estimate.cost_usd_micros));
        line.push_str(&format!("; {} model calls, {tokens} tokens, {money}", estimate.model_calls));
    }
    line
}

fn summary_line(summary: &IndexSummary) -> String {
    let mut line = format!(
        "{} indexed, {} unchanged, {} removed, {} skipped, {} failed",
        summary.indexed, summary.unchanged, summary.removed, summary.skipped, summary.failed
    );
    if summary.plain > 0 {
        line.push_str(&format!("; {} of them as plain text only (minified or too complex)", summary.plain));
    }
    line
}

const fn stage_name(stage: IndexStage) -> &'static str {
    match stage {
        IndexStage::Scanning => "scanning",
        IndexStage::Chunking => "chunking",
        IndexStage::Embedding => "embedding",
        IndexStage::Extracting => "extracting",
        IndexStage::Merging => "merging",
        IndexStage::Summarizing => "summarizing",
    }
}

/// Draws `chunking    [########----------------]  120/360`.
pub(super) fn bar(progress: &IndexProgress) -> String {
    let filled = match progress.total {
        0 => 0,
        total => (progress.done.min(total) * BAR_WIDTH / total) as usize,
    };
    let bar = format!("{}{}", "#".repeat(filled), "-".repeat(BAR_WIDTH as usize - filled));
    let mut line = format!("{:<11} [{bar}] {}/{}", stage_name(progress.stage), progress.done, progress.total);
    if progress.tokens > 0 {
        let money = format::money(Some(progress.cost_usd_micros));
        line.push_str(&format!("  {} tokens, {money}", format::tokens(progress.tokens)));
    }
    line
}

pub(super) async fn insert(
    target: &Target,
    files: &[PathBuf],
    id: Option<String>,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    if id.is_some() && files.len() > 1 {
        return Err(Failure::usage("--id is for one document; leave it out"));
    }
    let mut documents = Vec::new();
    for file in files {
        let (path, text) = if file == Path::new("-") {
            (None, stdin::read_all()?)
        } else {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Failure::usage(format!("could not read {}: {error}", file.display())))?;
            (Some(file.to_string_lossy().into_owned()), text)
        };
        documents.push(InsertedDocument { id: id.clone(), path, text });
    }
    let params =
        KnowledgeInsertParams { workspace: target.workspace.clone(), documents, idempotency_key: None };
    let reply: KnowledgeInsertReply = target.client.call::<methods::knowledge::Insert>(&params).await?;
    if json {
        return Ok(out.json(&reply)?);
    }
    for document in &reply.documents {
        let note = if document.unchanged { " (unchanged)" } else { "" };
        out.say(&format!("{}{note}", escape::line(&document.id)))?;
    }
    Ok(())
}

pub(super) async fn cancel(target: &Target, out: &mut OutputStreams) -> Result<(), Failure> {
    let params = KnowledgeStatusParams { workspace: target.workspace.clone() };
    let status: IndexStatus = target.client.call::<methods::knowledge::Status>(&params).await?;
    let Some(job) = status.job.filter(|job| job.state == "running") else {
        return Ok(out.note("no job works on this index")?);
    };
    let _: KnowledgeCancelReply = cancel_job(target, &job.job_id).await?;
    Ok(out.say("cancelled")?)
}

async fn cancel_job(target: &Target, job_id: &str) -> Result<KnowledgeCancelReply, CallError> {
    let params = KnowledgeCancelParams {
        workspace: target.workspace.clone(),
        job_id: Some(job_id.to_owned()),
        query_id: None,
        idempotency_key: None,
    };
    target.client.call::<methods::knowledge::Cancel>(&params).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_bar_fills_with_finished_units() {
        let progress = |done, total| IndexProgress {
            stage: IndexStage::Chunking,
            done,
            total,
            tokens: 0,
            cost_usd_micros: 0,
        };
        assert_eq!(bar(&progress(0, 0)), format!("chunking    [{}] 0/0", "-".repeat(24)));
        assert_eq!(bar(&progress(5, 10)), format!("chunking    [{}{}] 5/10", "#".repeat(12), "-".repeat(12)));
        assert_eq!(bar(&progress(11, 10)), format!("chunking    [{}] 11/10", "#".repeat(24)));
    }
}
