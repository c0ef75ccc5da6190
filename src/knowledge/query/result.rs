//! The two query results that contain no answer.

use crate::types::knowledge::{Metadata, QueryError, QueryResult, QueryStatus, RawData};

/// The response if nothing was found. It ends with a tag for programs.
pub const NO_CONTEXT_RESPONSE: &str = "I cannot answer this: the index has nothing about it. Ask in other words, or index more files. [no-context]";

impl QueryResult {
    /// The result if nothing was found or nothing was searched.
    #[must_use]
    pub fn no_context(metadata: Metadata) -> Self {
        Self {
            status: QueryStatus::NoContext,
            response: NO_CONTEXT_RESPONSE.into(),
            context: Some(String::new()),
            raw_data: RawData { metadata, ..RawData::default() },
            error: None,
        }
    }

    /// The result of a query that could not be finished. `raw_data` contains the results until then.
    #[must_use]
    pub fn failed(kind: &str, message: &str, raw_data: RawData) -> Self {
        Self {
            status: QueryStatus::Failed,
            response: format!("{message} [failed]"),
            context: None,
            raw_data,
            error: Some(QueryError { kind: kind.into(), message: message.into() }),
        }
    }
}
