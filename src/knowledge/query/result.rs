//! The two query results that contain no answer.

use types::knowledge::{Metadata, QueryError, QueryResult, QueryStatus, RawData};

/// The response if nothing was found. It ends with a tag for programs.
pub const NO_CONTEXT_RESPONSE: &str = "I cannot answer this: the index has nothing about it. Ask in other words, or index more files. [no-context]";

/// The result if nothing was found or nothing was searched.
#[must_use]
pub fn no_context_result(metadata: Metadata) -> QueryResult {
    QueryResult {
        status: QueryStatus::NoContext,
        response: NO_CONTEXT_RESPONSE.into(),
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
