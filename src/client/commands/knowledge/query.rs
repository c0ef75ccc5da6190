//! `agentctl knowledge query`.

use std::path::Path;

use api::methods;

use super::Target;
use super::results;
use crate::args::QueryArgs;
use crate::connection::stdin;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::params::{KnowledgeQueryReply, KnowledgeWorkParams};
use types::knowledge::{ChatMessage, KnowledgeEvent, QueryMode, QueryParams, QueryResult, QueryStatus};

pub(super) async fn query(target: &Target, args: QueryArgs, out: &mut OutputStreams) -> Result<(), Failure> {
    let (json, shows_results, shows_prompt) = (args.json, args.context, args.prompt);
    let params = params(target.workspace.clone(), args)?;
    let reply: KnowledgeQueryReply = target.client.call::<methods::knowledge::Query>(&params).await?;
    let result = match reply {
        KnowledgeQueryReply::Started { query_id } => return stream(target, query_id, out).await,
        KnowledgeQueryReply::Result(result) => *result,
    };
    if json {
        return Ok(out.json(&result)?);
    }
    match (&result.status, &result.context) {
        (QueryStatus::Success, _) if shows_results => {
            out.say(&results::text(&result.raw_data))?;
            warnings(&result, out)
        }
        (QueryStatus::Success, Some(context)) if shows_prompt => Ok(out.say_text(context)?),
        _ => end(&result, out),
    }
}

/// The parameters of the method.
fn params(workspace: String, args: QueryArgs) -> Result<QueryParams, Failure> {
    let history = args.history.as_deref().map(history).transpose()?;
    let list = |words: Vec<String>| (!words.is_empty()).then_some(words);
    Ok(QueryParams {
        workspace,
        query: args.query.join(" "),
        // A user also means texts without a symbol; the method's own default reads the graph alone.
        mode: Some(args.mode.map_or(QueryMode::Mix, Into::into)),
        hl_keywords: list(args.themes),
        ll_keywords: list(args.names),
        only_need_context: args.context.then_some(true),
        only_need_prompt: args.prompt.then_some(true),
        include_context: args.include_context.then_some(true),
        top_k: args.limits.top_k,
        chunk_top_k: args.limits.chunk_top_k.or(args.limits.top_k).map(Some),
        max_entity_tokens: args.limits.max_entity_tokens,
        max_relation_tokens: args.limits.max_relation_tokens,
        max_total_tokens: args.limits.max_total_tokens,
        response_type: args.response_type,
        user_prompt: args.user_prompt,
        language: args.language,
        conversation_history: history,
        enable_rerank: args.selection.no_rerank.then_some(false),
        min_rerank_score: args.selection.min_rerank_score,
        local_relations: args.selection.local_relations.then_some(true),
        relation_chunks: args.selection.relation_chunks.then_some(true),
        entity_order: args.selection.entity_order.map(Into::into),
        chunk_pick: args.selection.chunk_pick.map(Into::into),
        stream: !args.json && !args.context && !args.prompt,
        idempotency_key: None,
    })
}

/// Reads the conversation before the question: a JSON list of `{"role", "content"}`.
fn history(file: &Path) -> Result<Vec<ChatMessage>, Failure> {
    let text = if file == Path::new("-") {
        stdin::read_all()?
    } else {
        std::fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("could not read {}: {error}", file.display())))?
    };
    serde_json::from_str(&text).map_err(|error| {
        let form = r#"expected a list such as [{"role": "user", "content": "…"}]"#;
        Failure::usage(format!("could not read the history in {}: {error}; {form}", file.display()))
    })
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
    warnings(result, out)?;
    match result.context.as_deref().filter(|context| !context.is_empty()) {
        Some(context) => Ok(out.say(&format!("\n---prompt---\n{}", escape::text(context)))?),
        None => Ok(()),
    }
}

fn warnings(result: &QueryResult, out: &mut OutputStreams) -> Result<(), Failure> {
    for warning in &result.raw_data.metadata.warnings {
        out.note(&escape::line(warning))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: QueryArgs,
    }

    /// Every field of the method has an option, except the workspace and the key, which the client sets.
    #[test]
    fn options_of_query_set_every_field_of_the_method() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("history.json");
        std::fs::write(&file, r#"[{"role": "user", "content": "before"}]"#).expect("a file");
        let words = [
            "query",
            "what",
            "is it",
            "--mode",
            "mix",
            "--theme",
            "t",
            "--name",
            "n",
            "--context",
            "--top-k",
            "7",
            "--chunk-top-k",
            "8",
            "--max-entity-tokens",
            "9",
            "--max-relation-tokens",
            "10",
            "--max-total-tokens",
            "11",
            "--response-type",
            "One line",
            "--user-prompt",
            "Be short.",
            "--language",
            "German",
            "--no-rerank",
            "--min-rerank-score",
            "0.5",
            "--local-relations",
            "--relation-chunks",
            "--entity-order",
            "similarity",
            "--chunk-pick",
            "weight",
            "--include-context",
            "--history",
        ];
        let words = words.into_iter().map(std::ffi::OsString::from).chain([file.clone().into_os_string()]);
        let args = Cli::try_parse_from(words).expect("valid options").args;
        let params = params("/w".into(), args).expect("parameters");
        let value = serde_json::to_value(&params).expect("JSON");
        // `params` names every field of the struct, so a new one does not compile without an option here.
        for (field, value) in value.as_object().expect("an object") {
            assert!(!value.is_null(), "{field}");
        }
        assert_eq!(value.as_object().map(serde_json::Map::len), Some(23), "{value}");
        assert_eq!(value["query"], "what is it");
        assert_eq!((value["chunk_top_k"].as_u64(), value["enable_rerank"].as_bool()), (Some(8), Some(false)));
        std::fs::write(&file, "{}").expect("a file");
        assert!(history(&file).expect_err("no list").to_string().contains("role"));
    }
}
