//! The reply of a query of an index. Its parameters are `types::knowledge::QueryParams`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reply of `knowledge.query`: the result, or the id of a streamed query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum KnowledgeQueryReply {
    /// With `stream`: the id for `knowledge.subscribe` and `knowledge.cancel`.
    Started {
        /// Id of the query.
        query_id: String,
    },
    /// The result.
    Result(Box<types::knowledge::QueryResult>),
}
