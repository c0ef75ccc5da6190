//! Converts between wire types and types of the index.

use crate::convert::invalid_param;
use api::params::{CacheKindParam, ChunkView, DocumentView, GraphEdge, GraphNode, IndexBudget, IndexJobView};
use api::{Code, Fault};
use knowledge::index::Budget;
use knowledge::registry::JobView;
use knowledge::{
    CacheKind, Chunk, Document, DocumentSource, Entity, ErrorKind, KnowledgeError, Level, Relation,
};
use types::config_values::micros;
use types::knowledge::IndexLevel;

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

pub(super) const fn level(level: IndexLevel) -> Level {
    match level {
        IndexLevel::Lexical => Level::Lexical,
        IndexLevel::Structure => Level::Structure,
        IndexLevel::Semantic => Level::Semantic,
    }
}

pub(super) const fn index_level(level: Level) -> IndexLevel {
    match level {
        Level::Lexical => IndexLevel::Lexical,
        Level::Structure => IndexLevel::Structure,
        Level::Semantic => IndexLevel::Semantic,
    }
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

pub(super) fn job(job: JobView) -> IndexJobView {
    IndexJobView {
        job_id: job.id,
        state: job.state.to_owned(),
        progress: job.progress,
        summary: job.summary,
        error: job.error,
    }
}

pub(super) fn document(document: Document) -> DocumentView {
    DocumentView {
        id: document.id.0,
        path: document.path,
        status: document.status.as_str().to_owned(),
        level: document.level.as_str().to_owned(),
        source: match document.source {
            DocumentSource::File => "file".to_owned(),
            DocumentSource::Inserted => "inserted".to_owned(),
        },
        error: document.error,
        language: document.language,
        bytes: document.bytes,
        chunks: document.chunks,
        updated_at_ms: document.updated_at_ms,
    }
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

pub(super) fn edge(relation: Relation) -> GraphEdge {
    GraphEdge {
        source: relation.source,
        target: relation.target,
        keywords: relation.keywords,
        description: relation.description,
        weight: relation.weight,
    }
}

pub(super) const fn cache_kind(kind: CacheKindParam) -> CacheKind {
    match kind {
        CacheKindParam::Extract => CacheKind::Extract,
        CacheKindParam::Summary => CacheKind::Summary,
        CacheKindParam::Keywords => CacheKind::Keywords,
        CacheKindParam::Query => CacheKind::Query,
    }
}
