//! The methods about the index of a workspace.

use super::{CHANGES, READS, methods};
use crate::KNOWLEDGE_EVENT;
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Index a workspace, or update its index. The reply comes at once with the job and an estimate;
    /// `knowledge.subscribe` reports the progress.
    Index = "knowledge.index", p::KnowledgeIndexParams => types::knowledge::StartedIndexJob,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::Budget, Code::Busy, Code::Overloaded, Code::Internal,
        ]);
    /// Add documents that are not files to the index of a workspace.
    Insert = "knowledge.insert", p::KnowledgeInsertParams => p::KnowledgeInsertReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Ask a question about an index. Without `stream` the reply is the result; every path has one, with
    /// `status` success, no_context or failed.
    Query = "knowledge.query", types::knowledge::QueryParams => p::KnowledgeQueryReply,
        CHANGES.waits().errors(&[Code::InvalidParams, Code::NotFound, Code::Overloaded, Code::Internal]);
    /// The documents of an index by path.
    DocumentsList = "knowledge.documents.list", p::KnowledgeDocumentsParams => p::KnowledgeDocumentsReply,
        READS.waits().errors(&[Code::InvalidParams, Code::NotFound, Code::Internal]);
    /// One document with its chunks.
    DocumentsGet = "knowledge.documents.get", p::KnowledgeDocumentParams => p::KnowledgeDocumentReply,
        READS.waits().errors(&[Code::InvalidParams, Code::NotFound, Code::Internal]);
    /// Remove a document from an index. What other documents say about its entities stays.
    DocumentsDelete = "knowledge.documents.delete", p::KnowledgeDocumentDeleteParams => p::KnowledgeDocumentDeleteReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// A part of the graph around an entity, also as Mermaid, DOT, GraphML or HTML.
    Graph = "knowledge.graph", p::KnowledgeGraphParams => p::KnowledgeGraphReply,
        READS.waits().errors(&[Code::InvalidParams, Code::NotFound, Code::Internal]);
    /// State and size of an index, and its newest job.
    Status = "knowledge.status", p::KnowledgeStatusParams => types::knowledge::IndexStatus,
        READS.waits().errors(&[Code::InvalidParams, Code::NotFound, Code::Internal]);
    /// Stop an index job or a query. A stopped job goes on with the next `knowledge.index`.
    Cancel = "knowledge.cancel", p::KnowledgeCancelParams => p::KnowledgeCancelReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Follow an index job or a query as `knowledge.event` notifications. The last one is `done`, `failed` or
    /// `cancelled`. End it with session.unsubscribe.
    Subscribe = "knowledge.subscribe", p::KnowledgeWorkParams => p::SubscriptionId,
        READS.notifies(&[KNOWLEDGE_EVENT]).errors(&[Code::InvalidParams, Code::NotFound, Code::Overloaded]);
    /// Forget answers of models that an index keeps.
    CacheClear = "knowledge.cache.clear", p::KnowledgeCacheClearParams => p::KnowledgeCacheClearReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Delete the index of a workspace with all inserted documents. Files of the workspace stay.
    Delete = "knowledge.delete", p::KnowledgeDeleteParams => p::KnowledgeDeleteReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Add an entity to the graph.
    EntityCreate = "knowledge.entity.create", p::KnowledgeEntityParams => p::KnowledgeEntityReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Change name, type or description of an entity. Later index jobs keep the change.
    EntityUpdate = "knowledge.entity.update", p::KnowledgeEntityParams => p::KnowledgeEntityReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Join entities into one.
    EntityMerge = "knowledge.entity.merge", p::KnowledgeEntityMergeParams => p::KnowledgeEntityReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Remove an entity and its relations.
    EntityDelete = "knowledge.entity.delete", p::KnowledgeEntityParams => p::KnowledgeEntityReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Add a relation between two entities.
    RelationCreate = "knowledge.relation.create", p::KnowledgeRelationParams => p::KnowledgeRelationReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Change keywords, description or weight of a relation.
    RelationUpdate = "knowledge.relation.update", p::KnowledgeRelationParams => p::KnowledgeRelationReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
    /// Remove a relation.
    RelationDelete = "knowledge.relation.delete", p::KnowledgeRelationParams => p::KnowledgeRelationReply,
        CHANGES.waits().errors(&[
            Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal,
        ]);
}
