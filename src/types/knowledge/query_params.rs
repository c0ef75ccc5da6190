//! The parameters of a query: its mode, its limits, and the form of the answer.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::query::{ChatMessage, ChunkPick, EntityOrder, QueryMode};

/// Maximum characters of a query.
const MAX_QUERY_CHARS: usize = 64 * 1024;
/// Maximum messages of the history.
const MAX_HISTORY_MESSAGES: usize = 128;
/// Maximum keywords of one list.
pub const MAX_KEYWORDS: usize = 64;
/// Maximum characters of one keyword.
pub const MAX_KEYWORD_CHARS: usize = 512;
/// Longest name of a language in characters.
const MAX_LANGUAGE_CHARS: usize = 128;
/// Maximum of `top_k` and `chunk_top_k`.
const MAX_TOP_K: u32 = 1_000;
/// Maximum tokens of any budget.
const MAX_BUDGET_TOKENS: usize = 1_000_000;

/// `knowledge.query`: a question about the index of a workspace, with the options of the search and of the answer.
/// Methods give the value of an option, or its default if it is absent.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryParams {
    /// The workspace folder whose index is queried, absolute.
    pub workspace: String,
    /// The question, at most 65,536 characters.
    pub query: String,
    /// The parts of the index that the query reads.
    pub mode: Option<QueryMode>,
    /// Keywords for themes. If these or `ll_keywords` are given, the daemon does not ask a model for keywords.
    pub hl_keywords: Option<Vec<String>>,
    /// Keywords for names.
    pub ll_keywords: Option<Vec<String>>,
    /// Whether the result has the prompt in `context` instead of an answer.
    pub only_need_context: Option<bool>,
    /// Whether the result has the answer in `response` and its prompt in `context`.
    pub include_context: Option<bool>,
    /// The same as `only_need_context`.
    pub only_need_prompt: Option<bool>,
    /// Maximum number of entities and of relations to find, 40 by default.
    pub top_k: Option<u32>,
    /// Maximum number of chunks to keep, 20 by default; `null` for the value of `top_k`.
    #[serde(default, deserialize_with = "deserialize_nullable")]
    #[schemars(with = "Option<u32>")]
    pub chunk_top_k: Option<Option<u32>>,
    /// Maximum tokens of all entities, 6,000 by default.
    pub max_entity_tokens: Option<u32>,
    /// Maximum tokens of all relations, 8,000 by default.
    pub max_relation_tokens: Option<u32>,
    /// Maximum tokens of the whole prompt with the conversation, 30,000 by default.
    pub max_total_tokens: Option<u32>,
    /// The form of the answer, `Multiple Paragraphs` by default.
    pub response_type: Option<String>,
    /// Further instructions for the answer.
    pub user_prompt: Option<String>,
    /// The language of keywords and answer. If it is absent, they use the language of the query.
    pub language: Option<String>,
    /// The conversation before the query, at most 128 messages. Only the model call for the answer contains it.
    pub conversation_history: Option<Vec<ChatMessage>>,
    /// Whether the configured reranker, if there is one, ranks the chunks again; `true` by default.
    pub enable_rerank: Option<bool>,
    /// Chunks below this score of the reranker are dropped.
    pub min_rerank_score: Option<f64>,
    /// With mode `local`: whether relations are searched as well.
    pub local_relations: Option<bool>,
    /// With modes `global` and `hybrid`: whether the chunks of relations are used as well.
    pub relation_chunks: Option<bool>,
    /// The order of entities.
    pub entity_order: Option<EntityOrder>,
    /// How chunks of entities are chosen.
    pub chunk_pick: Option<ChunkPick>,
    /// Whether the reply comes at once with `query_id`. `knowledge.subscribe` then sends the events.
    #[serde(default)]
    pub stream: bool,
    /// Repeating the call with the same key returns the first reply.
    pub idempotency_key: Option<String>,
}

/// Distinguishes `null` from an absent value.
fn deserialize_nullable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A parameter with a value that the query cannot use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidParam {
    /// The parameter.
    pub path: String,
    /// The problem with its value.
    pub why: String,
}

impl QueryParams {
    /// Takes the options that the configuration can set from `defaults` if they are absent.
    #[must_use]
    pub fn with_defaults(self, defaults: &Self) -> Self {
        Self {
            mode: self.mode.or(defaults.mode),
            top_k: self.top_k.or(defaults.top_k),
            chunk_top_k: self.chunk_top_k.or(defaults.chunk_top_k),
            max_entity_tokens: self.max_entity_tokens.or(defaults.max_entity_tokens),
            max_relation_tokens: self.max_relation_tokens.or(defaults.max_relation_tokens),
            max_total_tokens: self.max_total_tokens.or(defaults.max_total_tokens),
            min_rerank_score: self.min_rerank_score.or(defaults.min_rerank_score),
            ..self
        }
    }

    /// The parts of the index that are read.
    #[must_use]
    pub fn mode(&self) -> QueryMode {
        self.mode.unwrap_or_default()
    }

    /// Whether the result has the prompt instead of an answer.
    #[must_use]
    pub fn wants_context(&self) -> bool {
        self.only_need_context == Some(true) || self.only_need_prompt == Some(true)
    }

    /// Whether the result has the prompt next to the answer.
    #[must_use]
    pub fn includes_context(&self) -> bool {
        self.include_context == Some(true)
    }

    /// Maximum number of entities and of relations to find.
    #[must_use]
    pub fn top_k(&self) -> usize {
        self.top_k.unwrap_or(40) as usize
    }

    /// Maximum number of chunks in the context.
    #[must_use]
    pub fn chunk_limit(&self) -> usize {
        match self.chunk_top_k {
            None => 20,
            Some(None) => self.top_k(),
            Some(Some(chunks)) => chunks as usize,
        }
    }

    /// Maximum tokens of all entities.
    #[must_use]
    pub fn max_entity_tokens(&self) -> usize {
        self.max_entity_tokens.unwrap_or(6_000) as usize
    }

    /// Maximum tokens of all relations.
    #[must_use]
    pub fn max_relation_tokens(&self) -> usize {
        self.max_relation_tokens.unwrap_or(8_000) as usize
    }

    /// Maximum tokens of the whole prompt.
    #[must_use]
    pub fn max_total_tokens(&self) -> usize {
        self.max_total_tokens.unwrap_or(30_000) as usize
    }

    /// The form of the answer.
    #[must_use]
    pub fn response_type(&self) -> &str {
        self.response_type.as_deref().unwrap_or("Multiple Paragraphs")
    }

    /// Further instructions for the answer; empty for none.
    #[must_use]
    pub fn user_prompt(&self) -> &str {
        self.user_prompt.as_deref().unwrap_or_default()
    }

    /// The conversation before the query.
    #[must_use]
    pub fn history(&self) -> &[ChatMessage] {
        self.conversation_history.as_deref().unwrap_or_default()
    }

    /// Whether a configured reranker ranks the chunks again.
    #[must_use]
    pub fn enable_rerank(&self) -> bool {
        self.enable_rerank.unwrap_or(true)
    }

    /// Chunks below this score of the reranker are dropped.
    #[must_use]
    pub fn min_rerank_score(&self) -> f64 {
        self.min_rerank_score.unwrap_or_default()
    }

    /// Whether the relations of the found entities are used.
    #[must_use]
    pub fn wants_relations(&self) -> bool {
        let mode = self.mode();
        mode.has_relations() || (mode == QueryMode::Local && self.local_relations == Some(true))
    }

    /// Whether the chunks of the found relations are used.
    #[must_use]
    pub fn wants_relation_chunks(&self) -> bool {
        self.relation_chunks == Some(true) && matches!(self.mode(), QueryMode::Global | QueryMode::Hybrid)
    }

    /// Checks the limits of a request.
    ///
    /// # Errors
    /// The first parameter beyond its limit.
    pub fn check(&self) -> Result<(), InvalidParam> {
        let bad = |path: &str, why: String| Err(InvalidParam { path: path.into(), why });
        if self.query.trim().is_empty() {
            return bad("query", "there is no text in it".into());
        }
        if self.query.chars().nth(MAX_QUERY_CHARS).is_some() {
            return bad("query", format!("it has more than {MAX_QUERY_CHARS} characters; shorten it"));
        }
        for (path, text, max) in [
            ("user_prompt", self.user_prompt(), MAX_QUERY_CHARS),
            ("response_type", self.response_type(), MAX_KEYWORD_CHARS),
            ("language", self.language.as_deref().unwrap_or_default(), MAX_LANGUAGE_CHARS),
        ] {
            if text.chars().nth(max).is_some() {
                return bad(path, format!("it has more than {max} characters; shorten it"));
            }
        }
        let messages = self.history().len();
        if messages > MAX_HISTORY_MESSAGES {
            let why = format!("expected at most {MAX_HISTORY_MESSAGES} messages, got {messages}");
            return bad("conversation_history", why);
        }
        for (path, keywords) in [("hl_keywords", &self.hl_keywords), ("ll_keywords", &self.ll_keywords)] {
            let keywords = keywords.as_deref().unwrap_or_default();
            if keywords.len() > MAX_KEYWORDS {
                return bad(
                    path,
                    format!("expected at most {MAX_KEYWORDS} keywords, got {}", keywords.len()),
                );
            }
            let is_long = |keyword: &String| keyword.chars().nth(MAX_KEYWORD_CHARS).is_some();
            if let Some(index) = keywords.iter().position(is_long) {
                let why = format!("a keyword has at most {MAX_KEYWORD_CHARS} characters");
                return bad(&format!("{path}[{index}]"), why);
            }
        }
        for (path, value) in [("top_k", self.top_k), ("chunk_top_k", self.chunk_top_k.flatten())] {
            if value.is_some_and(|value| value == 0 || value > MAX_TOP_K) {
                return bad(path, format!("expected 1 to {MAX_TOP_K}"));
            }
        }
        for (path, value) in [
            ("max_entity_tokens", self.max_entity_tokens()),
            ("max_relation_tokens", self.max_relation_tokens()),
            ("max_total_tokens", self.max_total_tokens()),
        ] {
            if value > MAX_BUDGET_TOKENS {
                return bad(path, format!("expected at most {MAX_BUDGET_TOKENS}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_query_mode_is_refused_with_all_names() {
        let error = "Hybrid".parse::<QueryMode>().expect_err("case matters");
        assert!(QueryMode::ALL.iter().all(|mode| error.contains(mode.name())), "{error}");
        for mode in QueryMode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
        }
    }

    #[test]
    fn mode_table_selects_parts_of_index() {
        let rows = [
            // mode, entities, relations, chunks of entities, chunks by text
            (QueryMode::Local, true, false, true, false),
            (QueryMode::Global, true, true, false, false),
            (QueryMode::Hybrid, true, true, true, false),
            (QueryMode::Naive, false, false, false, true),
            (QueryMode::Mix, true, true, true, true),
            (QueryMode::Bypass, false, false, false, false),
        ];
        for (mode, entities, relations, of_entities, direct) in rows {
            let got = (
                mode.has_entities(),
                mode.has_relations(),
                mode.has_entity_chunks(),
                mode.has_direct_chunks(),
            );
            assert_eq!(got, (entities, relations, of_entities, direct), "{mode}");
        }
    }

    #[test]
    fn parameters_beyond_limits_are_refused_with_path() {
        let base = || QueryParams { query: "q".into(), ..QueryParams::default() };
        assert_eq!(base().check(), Ok(()));
        let refused = |params: QueryParams, path: &str| {
            let bad = params.check().expect_err("beyond a limit");
            assert_eq!(bad.path, path, "{}", bad.why);
        };
        refused(QueryParams { query: " \n".into(), ..base() }, "query");
        refused(QueryParams { query: "ü".repeat(MAX_QUERY_CHARS + 1), ..base() }, "query");
        assert_eq!(QueryParams { query: "ü".repeat(MAX_QUERY_CHARS), ..base() }.check(), Ok(()));
        refused(QueryParams { top_k: Some(1_001), ..base() }, "top_k");
        refused(QueryParams { chunk_top_k: Some(Some(0)), ..base() }, "chunk_top_k");
        refused(QueryParams { max_total_tokens: Some(1_000_001), ..base() }, "max_total_tokens");
        refused(QueryParams { hl_keywords: Some(vec!["k".into(); 65]), ..base() }, "hl_keywords");
        refused(
            QueryParams { ll_keywords: Some(vec!["k".into(), "k".repeat(513)]), ..base() },
            "ll_keywords[1]",
        );
        refused(QueryParams { language: Some("k".repeat(129)), ..base() }, "language");
        refused(QueryParams { response_type: Some("k".repeat(513)), ..base() }, "response_type");
        let message = ChatMessage::user("");
        refused(
            QueryParams { conversation_history: Some(vec![message; 129]), ..base() },
            "conversation_history",
        );
    }
}
