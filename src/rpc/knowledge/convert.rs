//! Converts between wire types and types of the index.

use crate::convert::invalid_param;
use api::params::{ChunkView, GraphNode, IndexBudget};
use api::{Code, Fault};
use knowledge::index::Budget;
use knowledge::{Chunk, Entity, ErrorKind, KnowledgeError};
use types::config_values::micros;

/// Maps index errors to error codes. There is no wildcard arm, because a new kind of error must get a code.
pub(super) fn fault(error: KnowledgeError) -> Fault {
    let code = match error.kind {
        ErrorKind::Invalid | ErrorKind::Ambiguous => Code::InvalidParams,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::Exists => Code::Conflict,
        ErrorKind::Busy => Code::Busy,
        ErrorKind::BudgetRequired | ErrorKind::BudgetExceeded => Code::Budget,
        ErrorKind::Cancelled => Code::Cancelled,
        ErrorKind::Storage
        | ErrorKind::Damaged
        | ErrorKind::Model
        | ErrorKind::Embedder
        | ErrorKind::Files => Code::Internal,
    };
    let fault = Fault::new(code, error.message).with("reason", error.kind.as_str());
    if error.candidates.is_empty() { fault } else { fault.with("candidates", error.candidates) }
}

pub(super) fn budget(given: Option<IndexBudget>) -> Result<Budget, Fault> {
    let budget = match given {
        None => return Ok(Budget::default()),
        Some(IndexBudget::Tokens(tokens)) => Budget { tokens: Some(tokens), usd_micros: None },
        Some(IndexBudget::Limits { tokens, usd }) => {
            if usd.is_some_and(|usd| !usd.is_finite() || usd < 0.0) {
                return Err(invalid_param("budget.usd", "expected an amount of money"));
            }
            Budget { tokens, usd_micros: usd.map(micros) }
        }
    };
    if budget.is_set() { Ok(budget) } else { Err(invalid_param("budget", "name tokens or usd")) }
}

pub(super) fn chunk(chunk: Chunk) -> ChunkView {
    ChunkView {
        chunk_id: chunk.id.0,
        start_line: chunk.start_line,
        end_line: chunk.end_line,
        symbol: chunk.symbol,
        tokens: chunk.tokens,
        content: chunk.text,
    }
}

pub(super) fn node(entity: Entity) -> GraphNode {
    GraphNode {
        name: entity.name,
        entity_type: entity.entity_type,
        description: entity.description,
        degree: entity.degree,
    }
}
