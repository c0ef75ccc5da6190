//! The methods about the index of a workspace.

use super::{CHANGES, READS, methods};
use crate::KNOWLEDGE_EVENT;
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Indexes a workspace, or updates its index, and returns the index job and an estimate at once.
    /// `knowledge.subscribe` reports the progress.
    Index = "knowledge.index", p::KnowledgeIndexParams => types::knowledge::StartedIndexJob,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::Budget, Code::Busy, Code::Overloaded, Code::Internal,
        ]);
    /// Adds documents that are not files to the index of a workspace and returns the result for each document.
    Insert = "knowledge.insert", p::KnowledgeInsertParams => p::KnowledgeInsertReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Asks an index a question and returns the answer, with the `status` success, no_context or failed. With `stream`
    /// it returns an id, and `knowledge.subscribe` reports the answer.
    Query = "knowledge.query", types::knowledge::QueryParams => p::KnowledgeQueryReply,
        CHANGES.waits().errors(&[Code::InvalidParams, Code::NotFound, Code::Overloaded, Code::Internal]);
    /// Returns a page of the documents of an index, sorted by path.
    DocumentsList = "knowledge.documents.list", p::KnowledgeDocumentsParams => p::KnowledgeDocumentsReply,
        READS.waits().errors(&[Code::InvalidParams, Code::NotFound, Code::Internal]);
    /// Returns one document of an index with its chunks.
    DocumentsGet = "knowledge.documents.get", p::KnowledgeDocumentParams => p::KnowledgeDocumentReply,
        READS.waits().errors(&[Code::InvalidParams, Code::NotFound, Code::Internal]);
    /// Removes a document from an index and returns the result. What other documents say about its entities stays.
    DocumentsDelete = "knowledge.documents.delete", p::KnowledgeDocumentDeleteParams => p::KnowledgeDocumentDeleteReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Returns a part of the graph around an entity, as JSON, Mermaid, DOT, GraphML or HTML.
    Graph = "knowledge.graph", p::KnowledgeGraphParams => p::KnowledgeGraphReply,
        READS.waits().errors(&[Code::InvalidParams, Code::NotFound, Code::Internal]);
    /// Returns the state and the size of an index, and its newest index job.
    Status = "knowledge.status", p::KnowledgeStatusParams => types::knowledge::IndexStatus,
        READS.waits().errors(&[Code::InvalidParams, Code::NotFound, Code::Internal]);
    /// Stops an index job or a query and returns whether it was running. The next `knowledge.index` continues a stopped
    /// index job.
    Cancel = "knowledge.cancel", p::KnowledgeCancelParams => p::KnowledgeCancelReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Follows an index job or a query as `knowledge.event` notifications and returns the id of the subscription. The
    /// last notification is `done`, `failed` or `cancelled`. `session.unsubscribe` ends the subscription.
    Subscribe = "knowledge.subscribe", p::KnowledgeWorkParams => p::SubscriptionId,
        READS.notifies(&[KNOWLEDGE_EVENT]).errors(&[Code::InvalidParams, Code::NotFound, Code::Overloaded]);
    /// Deletes cached answers of models from an index and returns how many.
    CacheClear = "knowledge.cache.clear", p::KnowledgeCacheClearParams => p::KnowledgeCacheClearReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Deletes the index of a workspace with all inserted documents and returns whether there was one. Files of the
    /// workspace stay.
    Delete = "knowledge.delete", p::KnowledgeDeleteParams => p::KnowledgeDeleteReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Adds an entity to the graph and returns it.
    EntityCreate = "knowledge.entity.create", p::KnowledgeEntityParams => p::KnowledgeEntityReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Changes the name, type or description of an entity and returns it. Later index jobs keep the change.
    EntityUpdate = "knowledge.entity.update", p::KnowledgeEntityParams => p::KnowledgeEntityReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Merges entities into one and returns it.
    EntityMerge = "knowledge.entity.merge", p::KnowledgeEntityMergeParams => p::KnowledgeEntityReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Removes an entity and its relations from the graph.
    EntityDelete = "knowledge.entity.delete", p::KnowledgeEntityParams => p::KnowledgeEntityReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Adds a relation between two entities and returns it.
    RelationCreate = "knowledge.relation.create", p::KnowledgeRelationParams => p::KnowledgeRelationReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Changes the keywords, description or weight of a relation and returns it.
    RelationUpdate = "knowledge.relation.update", p::KnowledgeRelationParams => p::KnowledgeRelationReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Removes a relation from the graph.
    RelationDelete = "knowledge.relation.delete", p::KnowledgeRelationParams => p::KnowledgeRelationReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
}
