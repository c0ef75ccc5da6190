//! KnowledgeSearch: parts of files from the index of the workspace, without any model call.

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::call::internal_error;
use crate::context::ToolContext;
use crate::error::{ToolError, cancelled};
use knowledge::query::tool_params;
use knowledge::registry::Indexes;
use knowledge::{ErrorKind, KnowledgeError};
use types::knowledge::{QueryMode, QueryParams};
use types::tool::{PreparedCall, Subject, ToolOutcome};

/// The name of the tool.
pub const NAME: &str = "KnowledgeSearch";

pub(super) const DESCRIPTION: &str = "Searches the index of this workspace and returns the most relevant parts of files \
    with path:lines, without reading files one by one. Use it first for questions about where or how something is done. \
    Name identifiers, files and terms that you expect in `keywords`: they are searched as they are and in parts. Use Grep \
    for exact text and Read for more of a file. The index may be older than the files.";

/// Tokens of a result.
const DEFAULT_TOKENS: usize = 6_000;
const MAX_TOKENS: usize = 20_000;
const MIN_TOKENS: usize = 200;
/// Entities and chunks of a result.
const MAX_TOP_K: usize = 50;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The question or topic.
    query: String,
    /// Names, files and terms that the answer probably contains.
    #[serde(default)]
    keywords: Vec<String>,
    /// mix (default): graph and text; local: symbols and their code; global: symbols and relations; hybrid; naive: text.
    #[serde(default)]
    #[schemars(with = "String")]
    mode: Option<String>,
    /// Parts of files to find, 10 by default.
    #[serde(default)]
    #[schemars(with = "u32")]
    top_k: Option<usize>,
    /// Tokens of the result, 6000 by default.
    #[serde(default)]
    #[schemars(with = "u32")]
    max_tokens: Option<usize>,
}

impl Input {
    fn params(&self) -> Result<QueryParams, ToolError> {
        let mode = match self.mode.as_deref() {
            None | Some("") => QueryMode::Mix,
            Some(name) => name.parse().map_err(|why| invalid_input("mode", why))?,
        };
        let tokens = self.max_tokens.unwrap_or(DEFAULT_TOKENS).clamp(MIN_TOKENS, MAX_TOKENS) as u32;
        let top_k = self.top_k.map(|top_k| top_k.clamp(1, MAX_TOP_K) as u32);
        let keywords = self.keywords.iter().filter(|word| !word.trim().is_empty()).cloned().collect();
        let params = tool_params(self.query.clone(), mode, keywords, top_k, tokens);
        params.check().map_err(|bad| invalid_input(&bad.path, bad.why))?;
        Ok(params)
    }
}

fn invalid_input(field: &str, why: String) -> ToolError {
    ToolError::new("invalid_input", format!("the arguments of {NAME} are wrong at `{field}`: {why}"))
}

pub(super) fn prepare(input: &Input) -> Result<PreparedCall, ToolError> {
    input.params()?;
    let shown: String = input.query.chars().take(80).collect();
    Ok(PreparedCall::read(Subject::Session { tool: NAME.into() }, format!("Search the index for {shown}")))
}

pub(super) async fn run(
    context: &ToolContext,
    input: &Input,
    stop: &CancellationToken,
) -> Result<ToolOutcome, ToolError> {
    let indexes: &Indexes = context.settings.knowledge.as_ref().ok_or_else(internal_error)?;
    let params = input.params()?;
    let workspace = context.session_context.workspace.clone();
    // Files that a rule denies for Read are hidden from this tool as well.
    let (unreadable, root) = (context.session_context.unreadable.clone(), workspace.clone());
    let is_allowed = move |path: &str| !unreadable.is_unreadable("Read", &root.join(path));
    let search = indexes.search_for_tool(&workspace, params, is_allowed, stop.clone());
    let found = tokio::select! {
        found = context.progress.follow(search, || "the index is searched".into()) => found.map_err(search_error)?,
        () = stop.cancelled() => return Ok(cancelled()),
    };
    let mut text = found
        .text
        .unwrap_or_else(|| "The index has nothing about this. Try other keywords, or Grep.".to_owned());
    for note in &found.notes {
        text.push_str(&format!("\nNote: {note}"));
    }
    Ok(ToolOutcome::completed(text))
}

fn search_error(error: KnowledgeError) -> ToolError {
    let code = match error.kind {
        ErrorKind::NotFound => "no_index",
        _ => "index_failed",
    };
    ToolError::new(code, format!("{}; use Grep and Read instead", error.message))
}
