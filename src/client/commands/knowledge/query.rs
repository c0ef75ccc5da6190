//! `agentctl knowledge query`.

use api::methods;
use serde_json::json;

use super::Target;
use crate::args::QueryArgs;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::params::{KnowledgeQueryReply, KnowledgeWorkParams};
use types::knowledge::{KnowledgeEvent, QueryMode, QueryResult, QueryStatus};

pub(super) async fn query(target: &Target, args: QueryArgs, out: &mut OutputStreams) -> Result<(), Failure> {
    let mut params = json!({ "workspace": target.workspace, "query": args.query.join(" ") });
    let is_streamed = !args.json && !args.context;
    let mut set = |name: &str, value: serde_json::Value| {
        params[name] = value;
    };
    if let Some(mode) = args.mode {
        set("mode", json!(QueryMode::from(mode)));
    }
    if !args.themes.is_empty() {
        set("hl_keywords", json!(args.themes));
    }
    if !args.names.is_empty() {
        set("ll_keywords", json!(args.names));
    }
    if let Some(top_k) = args.top_k {
        set("top_k", json!(top_k));
        set("chunk_top_k", json!(top_k));
    }
    if let Some(language) = args.language {
        set("language", json!(language));
    }
    set("only_need_context", json!(args.context));
    set("stream", json!(is_streamed));
    let reply: KnowledgeQueryReply = target.client.call_as::<methods::knowledge::Query, _>(&params).await?;
    let result = match reply {
        KnowledgeQueryReply::Started { query_id } => return stream(target, query_id, out).await,
        KnowledgeQueryReply::Result(result) => *result,
    };
    if args.json {
        return Ok(out.json(&result)?);
    }
    match (&result.status, &result.context) {
        (QueryStatus::Success, Some(context)) => Ok(out.say_text(context)?),
        _ => end(&result, out),
    }
}

/// Prints the parts of the answer as they arrive.
async fn stream(target: &Target, query_id: String, out: &mut OutputStreams) -> Result<(), Failure> {
    let work =
        KnowledgeWorkParams { workspace: target.workspace.clone(), job_id: None, query_id: Some(query_id) };
    let mut events = target.client.follow_knowledge(&work).await?;
    let mut has_text = false;
    loop {
        match events.next().await? {
            KnowledgeEvent::Delta { text } => {
                has_text = true;
                out.stream_text(&text)?;
            }
            KnowledgeEvent::Done { result, .. } => {
                out.fresh_line()?;
                return match result {
                    Some(result) if !has_text => end(&result, out),
                    Some(result) => sources(&result, out),
                    None => Ok(()),
                };
            }
            KnowledgeEvent::Failed { error, .. } => {
                out.fresh_line()?;
                return Err(Failure::internal(escape::text(&error.message).into_owned()));
            }
            KnowledgeEvent::Cancelled {} => {
                out.fresh_line()?;
                return Err(Failure::internal("the query was cancelled".to_owned()));
            }
            _ => {}
        }
    }
}

fn end(result: &QueryResult, out: &mut OutputStreams) -> Result<(), Failure> {
    if let Some(error) = &result.error {
        return Err(Failure::internal(escape::text(&error.message).into_owned()));
    }
    out.say_text(&result.response)?;
    sources(result, out)
}

fn sources(result: &QueryResult, out: &mut OutputStreams) -> Result<(), Failure> {
    for reference in result.raw_data.references.iter().filter(|it| !it.reference_id.is_empty()) {
        let lines: Vec<String> = reference.lines.iter().map(|(from, to)| format!("{from}-{to}")).collect();
        let path = escape::line(&reference.path).into_owned();
        out.note(&format!("[{}] {path}:{}", reference.reference_id, lines.join(",")))?;
    }
    for warning in &result.raw_data.metadata.warnings {
        out.note(&escape::line(warning))?;
    }
    Ok(())
}
