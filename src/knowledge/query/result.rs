//! The two query results that contain no answer.

use types::knowledge::{Metadata, QueryError, QueryResult, QueryStatus, RawData};

/// The response if nothing was found. It ends with a tag for programs.
pub const NO_CONTEXT_RESPONSE: &str = "I cannot answer this: the index has nothing about it. Ask in other words, or index more files. [no-context]";

/// Why there is nothing that a model could be asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum NoContextReason {
    /// The mode reads no index.
    Bypass,
    /// The index has nothing about the query.
    NothingFound,
    /// All found files are gone.
    FilesGone,
    /// The reranker gave all chunks a lower score than wanted.
    Reranker,
    /// The question and the conversation leave no tokens for what was found.
    TokenLimit,
}

impl NoContextReason {
    /// The machine-readable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The response; it ends with a tag for programs.
    #[must_use]
    pub const fn response(self) -> &'static str {
        match self {
            NoContextReason::Bypass => {
                "I cannot answer this: the mode bypass searches nothing. Choose another mode, for example hybrid. [no-context]"
            }
            NoContextReason::NothingFound => NO_CONTEXT_RESPONSE,
            NoContextReason::FilesGone => {
                "I cannot answer this: all files that the search found are gone. Index again. [no-context]"
            }
            NoContextReason::Reranker => {
                "I cannot answer this: the reranker scored everything that was found below min_rerank_score. Lower it, or turn \
                 the reranker off. [no-context]"
            }
            NoContextReason::TokenLimit => {
                "I cannot answer this: the token limits leave no room for what was found next to the question and the \
                 conversation. Raise max_total_tokens, max_entity_tokens or max_relation_tokens, or shorten the conversation. \
                 [no-context]"
            }
        }
    }
}

/// The result if there is nothing to ask a model about.
#[must_use]
pub fn no_context_result(mut metadata: Metadata, reason: NoContextReason) -> QueryResult {
    metadata.no_context_reason = Some(reason.as_str().to_owned());
    QueryResult {
        status: QueryStatus::NoContext,
        response: reason.response().into(),
        context: Some(String::new()),
        raw_data: RawData { metadata, ..RawData::default() },
        error: None,
    }
}

/// The result of a query that could not be finished. `raw_data` contains the results until then.
#[must_use]
pub fn failed_result(kind: &str, message: &str, raw_data: RawData) -> QueryResult {
    QueryResult {
        status: QueryStatus::Failed,
        response: format!("{message} [failed]"),
        context: None,
        raw_data,
        error: Some(QueryError { kind: kind.into(), message: message.into() }),
    }
}
