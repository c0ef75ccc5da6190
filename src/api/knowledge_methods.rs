//! The methods about the index of a workspace.

use super::fault::Code;
use super::field_names::field_names;
use super::method::{MethodRow, schema, subscription_id};
use super::params as p;

const READ: MethodRow = MethodRow {
    name: "",
    summary: "",
    unsupported_params: &[],
    errors: &[Code::InvalidParams, Code::NotFound, Code::Internal],
    mutates: false,
    waits: true,
    params: schema::<p::KnowledgeStatusParams>,
    names: field_names::<p::KnowledgeStatusParams>,
    reply: schema::<p::KnowledgeStatusReply>,
};

const CHANGE: MethodRow = MethodRow {
    errors: &[Code::InvalidParams, Code::NotFound, Code::Conflict, Code::Busy, Code::Internal],
    mutates: true,
    ..READ
};

const ENTITY: MethodRow = MethodRow {
    params: schema::<p::KnowledgeEntityParams>,
    names: field_names::<p::KnowledgeEntityParams>,
    reply: schema::<p::KnowledgeEntityReply>,
    ..CHANGE
};

const RELATION: MethodRow = MethodRow {
    params: schema::<p::KnowledgeRelationParams>,
    names: field_names::<p::KnowledgeRelationParams>,
    reply: schema::<p::KnowledgeRelationReply>,
    ..CHANGE
};

/// Rows of the table of methods, in the order of the reference.
pub(super) const KNOWLEDGE_METHODS: &[MethodRow] = &[
    MethodRow {
        name: "knowledge.index",
        summary: "Index a workspace, or update its index. The reply comes at once with the job and an estimate; \
                  `knowledge.subscribe` reports the progress.",
        errors: &[Code::InvalidParams, Code::Budget, Code::Busy, Code::Overloaded, Code::Internal],
        params: schema::<p::KnowledgeIndexParams>,
        names: field_names::<p::KnowledgeIndexParams>,
        reply: schema::<p::KnowledgeIndexReply>,
        ..CHANGE
    },
    MethodRow {
        name: "knowledge.insert",
        summary: "Add documents that are not files to the index of a workspace.",
        params: schema::<p::KnowledgeInsertParams>,
        names: field_names::<p::KnowledgeInsertParams>,
        reply: schema::<p::KnowledgeInsertReply>,
        ..CHANGE
    },
    MethodRow {
        name: "knowledge.query",
        summary: "Ask a question about an index. Without `stream` the reply is the result; every path has one, with \
                  `status` success, no_context or failed.",
        errors: &[Code::InvalidParams, Code::NotFound, Code::Overloaded, Code::Internal],
        // A query may call a model, which costs money, so observers may not call this method.
        mutates: true,
        params: schema::<p::KnowledgeQueryParams>,
        names: field_names::<p::KnowledgeQueryParams>,
        reply: schema::<p::KnowledgeQueryReply>,
        ..READ
    },
    MethodRow {
        name: "knowledge.documents.list",
        summary: "The documents of an index by path.",
        params: schema::<p::KnowledgeDocumentsParams>,
        names: field_names::<p::KnowledgeDocumentsParams>,
        reply: schema::<p::KnowledgeDocumentsReply>,
        ..READ
    },
    MethodRow {
        name: "knowledge.documents.get",
        summary: "One document with its chunks.",
        params: schema::<p::KnowledgeDocumentParams>,
        names: field_names::<p::KnowledgeDocumentParams>,
        reply: schema::<p::KnowledgeDocumentReply>,
        ..READ
    },
    MethodRow {
        name: "knowledge.documents.delete",
        summary: "Remove a document from an index. What other documents say about its entities stays.",
        params: schema::<p::KnowledgeDocumentDeleteParams>,
        names: field_names::<p::KnowledgeDocumentDeleteParams>,
        reply: schema::<p::KnowledgeDocumentDeleteReply>,
        ..CHANGE
    },
    MethodRow {
        name: "knowledge.graph",
        summary: "A part of the graph around an entity, also as Mermaid, DOT, GraphML or HTML.",
        params: schema::<p::KnowledgeGraphParams>,
        names: field_names::<p::KnowledgeGraphParams>,
        reply: schema::<p::KnowledgeGraphReply>,
        ..READ
    },
    MethodRow {
        name: "knowledge.status",
        summary: "State and size of an index, and its newest job.",
        ..READ
    },
    MethodRow {
        name: "knowledge.cancel",
        summary: "Stop an index job or a query. A stopped job goes on with the next `knowledge.index`.",
        params: schema::<p::KnowledgeWorkParams>,
        names: field_names::<p::KnowledgeWorkParams>,
        reply: schema::<p::KnowledgeCancelReply>,
        ..CHANGE
    },
    MethodRow {
        name: "knowledge.subscribe",
        summary: "Follow an index job or a query as `knowledge.event` notifications. The last one is `done`, `failed` or \
                  `cancelled`. End it with session.unsubscribe.",
        errors: &[Code::InvalidParams, Code::NotFound, Code::Overloaded],
        waits: false,
        params: schema::<p::KnowledgeWorkParams>,
        names: field_names::<p::KnowledgeWorkParams>,
        reply: subscription_id,
        ..READ
    },
    MethodRow {
        name: "knowledge.cache.clear",
        summary: "Forget answers of models that an index keeps.",
        params: schema::<p::KnowledgeCacheClearParams>,
        names: field_names::<p::KnowledgeCacheClearParams>,
        reply: schema::<p::KnowledgeCacheClearReply>,
        ..CHANGE
    },
    MethodRow {
        name: "knowledge.delete",
        summary: "Delete the index of a workspace with all inserted documents. Files of the workspace stay.",
        params: schema::<p::KnowledgeDeleteParams>,
        names: field_names::<p::KnowledgeDeleteParams>,
        reply: schema::<p::KnowledgeDeleteReply>,
        ..CHANGE
    },
    MethodRow { name: "knowledge.entity.create", summary: "Add an entity to the graph.", ..ENTITY },
    MethodRow {
        name: "knowledge.entity.update",
        summary: "Change name, type or description of an entity. Later index jobs keep the change.",
        ..ENTITY
    },
    MethodRow {
        name: "knowledge.entity.merge",
        summary: "Join entities into one.",
        params: schema::<p::KnowledgeEntityMergeParams>,
        names: field_names::<p::KnowledgeEntityMergeParams>,
        ..ENTITY
    },
    MethodRow { name: "knowledge.entity.delete", summary: "Remove an entity and its relations.", ..ENTITY },
    MethodRow {
        name: "knowledge.relation.create",
        summary: "Add a relation between two entities.",
        ..RELATION
    },
    MethodRow {
        name: "knowledge.relation.update",
        summary: "Change keywords, description or weight of a relation.",
        ..RELATION
    },
    MethodRow { name: "knowledge.relation.delete", summary: "Remove a relation.", ..RELATION },
];
