//! The parameters of a query: its mode, its limits, and the form of the answer.

use types::knowledge::{ChunkPick, EntityOrder, HistoryMessage, QueryMode};

/// Maximum characters of a query.
pub const MAX_QUERY_CHARS: usize = 64 * 1024;
/// Maximum messages of the history.
pub const MAX_HISTORY_MESSAGES: usize = 128;
/// Maximum keywords of one list.
pub const MAX_KEYWORDS: usize = 64;
/// Maximum characters of one keyword.
pub const MAX_KEYWORD_CHARS: usize = 512;
/// Longest name of a language in characters.
pub const MAX_LANGUAGE_CHARS: usize = 128;
/// Maximum of `top_k` and `chunk_top_k`.
pub const MAX_TOP_K: usize = 1_000;
/// Maximum tokens of any budget.
pub const MAX_BUDGET_TOKENS: usize = 1_000_000;

/// One query.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryParams {
    /// The question.
    pub query: String,
    /// The parts of the index that are read.
    pub mode: QueryMode,
    /// Keywords for themes, from the caller.
    pub hl_keywords: Vec<String>,
    /// Keywords for names, from the caller.
    pub ll_keywords: Vec<String>,
    /// Return the prompt instead of an answer.
    pub only_need_context: bool,
    /// Entities and relations to find.
    pub top_k: usize,
    /// Chunks to keep; absent for `top_k`.
    pub chunk_top_k: Option<usize>,
    /// Tokens of all entities.
    pub max_entity_tokens: usize,
    /// Tokens of all relations.
    pub max_relation_tokens: usize,
    /// Tokens of the whole prompt.
    pub max_total_tokens: usize,
    /// The form of the answer.
    pub response_type: String,
    /// Further instructions of the user for the answer.
    pub user_prompt: String,
    /// The language of keywords and answer; absent for that of the query.
    pub language: Option<String>,
    /// The conversation before the query, for the answer alone.
    pub history: Vec<HistoryMessage>,
    /// Whether chunks are ranked again, if there is a reranker.
    pub enable_rerank: bool,
    /// Chunks below this score of the reranker are dropped.
    pub min_rerank_score: f64,
    /// In `local`: relations as well.
    pub local_relations: bool,
    /// In `global` and `hybrid`: the chunks of relations as well.
    pub relation_chunks: bool,
    /// The order of entities.
    pub entity_order: EntityOrder,
    /// How to choose chunks of entities.
    pub chunk_pick: ChunkPick,
    /// Chunks per entity or relation.
    pub related_chunks: usize,
}

impl Default for QueryParams {
    fn default() -> Self {
        Self {
            query: String::new(),
            mode: QueryMode::default(),
            hl_keywords: Vec::new(),
            ll_keywords: Vec::new(),
            only_need_context: false,
            top_k: 40,
            chunk_top_k: Some(20),
            max_entity_tokens: 6_000,
            max_relation_tokens: 8_000,
            max_total_tokens: 30_000,
            response_type: "Multiple Paragraphs".into(),
            user_prompt: String::new(),
            language: None,
            history: Vec::new(),
            enable_rerank: true,
            min_rerank_score: 0.0,
            local_relations: false,
            relation_chunks: false,
            entity_order: EntityOrder::default(),
            chunk_pick: ChunkPick::default(),
            related_chunks: 5,
        }
    }
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
    /// Chunks that the context may hold.
    #[must_use]
    pub fn chunk_limit(&self) -> usize {
        self.chunk_top_k.unwrap_or(self.top_k)
    }

    /// Whether the relations of the found entities are used.
    #[must_use]
    pub const fn wants_relations(&self) -> bool {
        self.mode.has_relations() || (matches!(self.mode, QueryMode::Local) && self.local_relations)
    }

    /// Whether the chunks of the found relations are used.
    #[must_use]
    pub const fn wants_relation_chunks(&self) -> bool {
        self.relation_chunks && matches!(self.mode, QueryMode::Global | QueryMode::Hybrid)
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
        let language = self.language.as_deref().unwrap_or_default();
        for (path, text, max) in [
            ("user_prompt", self.user_prompt.as_str(), MAX_QUERY_CHARS),
            ("response_type", &self.response_type, MAX_KEYWORD_CHARS),
            ("language", language, MAX_LANGUAGE_CHARS),
        ] {
            if text.chars().nth(max).is_some() {
                return bad(path, format!("it has more than {max} characters; shorten it"));
            }
        }
        if self.history.len() > MAX_HISTORY_MESSAGES {
            let why = format!("expected at most {MAX_HISTORY_MESSAGES} messages, got {}", self.history.len());
            return bad("conversation_history", why);
        }
        for (path, keywords) in [("hl_keywords", &self.hl_keywords), ("ll_keywords", &self.ll_keywords)] {
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
        for (path, value) in [("top_k", Some(self.top_k)), ("chunk_top_k", self.chunk_top_k)] {
            if value.is_some_and(|value| value == 0 || value > MAX_TOP_K) {
                return bad(path, format!("expected 1 to {MAX_TOP_K}"));
            }
        }
        for (path, value) in [
            ("max_entity_tokens", self.max_entity_tokens),
            ("max_relation_tokens", self.max_relation_tokens),
            ("max_total_tokens", self.max_total_tokens),
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
    use types::knowledge::HistoryRole;

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
        refused(QueryParams { top_k: 1_001, ..base() }, "top_k");
        refused(QueryParams { chunk_top_k: Some(0), ..base() }, "chunk_top_k");
        refused(QueryParams { max_total_tokens: 1_000_001, ..base() }, "max_total_tokens");
        refused(QueryParams { hl_keywords: vec!["k".into(); 65], ..base() }, "hl_keywords");
        refused(QueryParams { ll_keywords: vec!["k".into(), "k".repeat(513)], ..base() }, "ll_keywords[1]");
        refused(QueryParams { language: Some("k".repeat(129)), ..base() }, "language");
        refused(QueryParams { response_type: "k".repeat(513), ..base() }, "response_type");
        let message = HistoryMessage { role: HistoryRole::User, content: String::new() };
        refused(QueryParams { history: vec![message; 129], ..base() }, "conversation_history");
    }
}
