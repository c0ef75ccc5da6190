//! Parameters and replies for the graph of an index and its changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::knowledge::Relation;

/// The format of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphFormatParam {
    /// Nodes and edges in the reply.
    #[default]
    Json,
    /// A Mermaid diagram in `data`.
    Mermaid,
    /// A Graphviz graph in `data`.
    Dot,
    /// GraphML in `data`.
    Graphml,
    /// One self-contained HTML page in `data`.
    Html,
}

/// `knowledge.graph`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeGraphParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// Name of the central entity. If it is absent, the graph contains the entities with the most relations.
    pub name: Option<String>,
    /// Maximum number of relations between the central entity and another one, 1 to 8; 2 by default.
    pub depth: Option<u32>,
    /// Maximum number of entities, 1 to 1,000; 200 by default.
    pub max_nodes: Option<u32>,
    /// The format of the graph.
    #[serde(default)]
    pub format: GraphFormatParam,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphNode {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub entity_type: String,
    /// Its description.
    pub description: String,
    /// Number of its relations in the whole graph.
    pub degree: u32,
}

/// Reply of `knowledge.graph`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeGraphReply {
    /// The nodes; empty if `format` is not `json`.
    pub nodes: Vec<GraphNode>,
    /// The edges between the nodes; empty if `format` is not `json`.
    pub edges: Vec<Relation>,
    /// Whether `max_nodes` cut the graph.
    pub truncated: bool,
    /// The graph as text; absent if `format` is `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// `knowledge.entity.create`, `.update`, `.delete`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeEntityParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// Name of the entity.
    pub name: String,
    /// With `update`: its new name.
    pub new_name: Option<String>,
    /// Its type; needed with `create`.
    #[serde(default, rename = "type")]
    pub entity_type: Option<String>,
    /// Its description; needed with `create`.
    pub description: Option<String>,
    /// A repeated call with the same key returns the same reply.
    pub idempotency_key: Option<String>,
}

/// `knowledge.entity.merge`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeEntityMergeParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// Names of the entities to merge into `target`, 1 to 100. They are removed.
    pub sources: Vec<String>,
    /// Name of the entity that receives their descriptions, chunks and relations.
    pub target: String,
    /// A repeated call with the same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.entity.create`, `.update`, `.merge` and `.delete`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeEntityReply {
    /// The entity; absent after `delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<GraphNode>,
}

/// `knowledge.relation.create`, `.update`, `.delete`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeRelationParams {
    /// The workspace folder, absolute.
    pub workspace: String,
    /// Name of the entity at one end.
    pub source: String,
    /// Name of the entity at the other end.
    pub target: String,
    /// Its keywords, separated by commas.
    pub keywords: Option<String>,
    /// Its description; needed with `create`.
    pub description: Option<String>,
    /// Its strength, 1.0 by default.
    pub weight: Option<f64>,
    /// A repeated call with the same key returns the same reply.
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.relation.create`, `.update` and `.delete`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeRelationReply {
    /// The relation; absent after `delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<Relation>,
}
