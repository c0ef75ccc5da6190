//! `agentctl knowledge documents`, `graph`, `status`, `clear`.

use api::methods;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use super::Target;
use super::index::bar;
use crate::args::GraphArgs;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::params::{
    KnowledgeCacheClearParams, KnowledgeCacheClearReply, KnowledgeDeleteParams, KnowledgeDeleteReply,
    KnowledgeDocumentDeleteParams, KnowledgeDocumentDeleteReply, KnowledgeDocumentParams,
    KnowledgeDocumentReply, KnowledgeDocumentsParams, KnowledgeGraphParams, KnowledgeGraphReply,
    KnowledgeStatusParams,
};
use types::knowledge::{CacheKind, IndexState, IndexStatus};

/// Documents of one page.
const PAGE_ROWS: u32 = 500;

pub(super) async fn documents(
    target: &Target,
    status: Option<String>,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let params = KnowledgeDocumentsParams {
        workspace: target.workspace.clone(),
        status,
        cursor: None,
        limit: Some(PAGE_ROWS),
    };
    let mut all = target.client.all_rows::<methods::knowledge::DocumentsList>(params).await?;
    all.sort_by(|a, b| (&a.path, &a.id).cmp(&(&b.path, &b.id)));
    if json {
        return Ok(out.json(&all)?);
    }
    for document in &all {
        let name = escape::line(document.path.as_deref().unwrap_or(&document.id)).into_owned();
        let error = document.error.as_deref().map(|error| format!("  {}", escape::line(error)));
        let (status, chunks) = (document.status.as_str(), document.chunks);
        out.say(&format!("{status:<10} {chunks:>5} chunks  {name}{}", error.unwrap_or_default()))?;
    }
    Ok(())
}

pub(super) async fn document(
    target: &Target,
    id: String,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let params = KnowledgeDocumentParams { workspace: target.workspace.clone(), id };
    let reply: KnowledgeDocumentReply =
        target.client.call::<methods::knowledge::DocumentsGet>(&params).await?;
    if json {
        return Ok(out.json(&reply)?);
    }
    let document = &reply.document;
    let name = escape::line(document.path.as_deref().unwrap_or(&document.id)).into_owned();
    out.say(&format!("{name}  {} ({}, {} bytes)", document.id, document.status.as_str(), document.bytes))?;
    for chunk in &reply.chunks {
        let symbol = chunk.symbol.as_deref().map(|symbol| format!("  {}", escape::line(symbol)));
        let (from, to, tokens) = (chunk.start_line, chunk.end_line, chunk.tokens);
        out.say(&format!("{from}-{to}  {tokens} tokens{}", symbol.unwrap_or_default()))?;
    }
    Ok(())
}

pub(super) async fn delete_document(
    target: &Target,
    id: String,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let params = KnowledgeDocumentDeleteParams {
        workspace: target.workspace.clone(),
        id,
        delete_cache: false,
        idempotency_key: None,
    };
    let reply: KnowledgeDocumentDeleteReply =
        target.client.call::<methods::knowledge::DocumentsDelete>(&params).await?;
    if json {
        return Ok(out.json(&reply)?);
    }
    match reply.status.as_str() {
        "success" => Ok(out.say("deleted")?),
        status => {
            let message = reply.message.unwrap_or_else(|| "the index has no such document".to_owned());
            Err(Failure::internal(format!("{} ({status})", escape::text(&message))))
        }
    }
}

pub(super) async fn graph(target: &Target, args: GraphArgs, out: &mut OutputStreams) -> Result<(), Failure> {
    let params = KnowledgeGraphParams {
        workspace: target.workspace.clone(),
        name: args.name,
        depth: args.depth,
        max_nodes: args.max_nodes,
        format: args.format.into(),
    };
    let reply: KnowledgeGraphReply = target.client.call::<methods::knowledge::Graph>(&params).await?;
    let text = match reply.data {
        Some(data) => data,
        None => serde_json::to_string_pretty(&reply).map_err(std::io::Error::other)? + "\n",
    };
    if reply.truncated {
        out.note("this is a part of the graph; --max-nodes shows more")?;
    }
    match args.output {
        Some(path) => {
            let failed = |error: std::io::Error| {
                Failure::usage(format!("could not write {}: {error}", path.display()))
            };
            // Descriptions may contain private text, so only the owner can read the file.
            let open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
            open.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)
        }
        None => Ok(out.stream_text(&text)?),
    }
}

pub(super) async fn status(target: &Target, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let params = KnowledgeStatusParams { workspace: target.workspace.clone() };
    let reply: IndexStatus = target.client.call::<methods::knowledge::Status>(&params).await?;
    if json {
        return Ok(out.json(&reply)?);
    }
    let state = match reply.state {
        IndexState::None => {
            return Ok(out.say("none: `agentctl knowledge index` makes an index of this folder")?);
        }
        IndexState::Indexing => "indexing",
        IndexState::Ready => "ready",
        IndexState::Failed => "failed",
    };
    out.say(&format!(
        "{state}: {} documents ({} failed), {} chunks, {} entities, {} relations",
        reply.documents, reply.failed_documents, reply.chunks, reply.entities, reply.relations
    ))?;
    if reply.watched {
        out.say("its files are watched; changes are indexed")?;
    }
    if let Some(job) = reply.job {
        if job.state == "cancelled" {
            out.say("the last job was stopped; `agentctl knowledge index` continues it")?;
        }
        if let Some(progress) = job.progress.filter(|_| job.state == "running") {
            out.say(&bar(&progress))?;
        }
        if let Some(text) = job.error.or(job.summary.and_then(|summary| summary.warning)) {
            out.say(&escape::text(&text))?;
        }
    }
    if !reply.left_out_folders.is_empty() {
        let folders = reply.left_out_folders.join(", ");
        out.say(&escape::line(&format!(
            "left out: {folders} (`agentctl knowledge index FOLDER` reads one)"
        )))?;
    }
    if reply.left_out_files > 0 {
        out.say(&format!("{} files are no text or look secret, and were left out", reply.left_out_files))?;
    }
    if let Some(notice) = reply.notice {
        out.say(&escape::text(&notice))?;
    }
    Ok(())
}

pub(super) async fn clear(
    target: &Target,
    all: bool,
    index: bool,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let workspace = target.workspace.clone();
    if index {
        let params = KnowledgeDeleteParams { workspace, idempotency_key: None };
        let reply: KnowledgeDeleteReply = target.client.call::<methods::knowledge::Delete>(&params).await?;
        let text = if reply.deleted { "deleted the index" } else { "there was no index" };
        return if json { Ok(out.json(&reply)?) } else { Ok(out.say(text)?) };
    }
    let kinds =
        all.then(|| vec![CacheKind::Extract, CacheKind::Summary, CacheKind::Keywords, CacheKind::Query]);
    let params = KnowledgeCacheClearParams { workspace, kinds, idempotency_key: None };
    let reply: KnowledgeCacheClearReply =
        target.client.call::<methods::knowledge::CacheClear>(&params).await?;
    if json { Ok(out.json(&reply)?) } else { Ok(out.say(&format!("forgot {} answers", reply.removed))?) }
}
