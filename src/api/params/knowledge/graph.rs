//! The graph of an index and its changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The form of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphFormatParam {
    /// Nodes and edges in the reply.
    #[default]
    Json,
    /// A Mermaid diagram in `data`.
    Mermaid,
    /// Graphviz in `data`.
    Dot,
    /// GraphML in `data`.
    Graphml,
    /// One HTML page that needs nothing else, in `data`.
    Html,
}

/// `knowledge.graph`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeGraphParams {
    /// The folder, absolute.
    pub workspace: String,
    /// The entity in the middle; absent for the entities with the most relations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Steps from it, 1 to 8; 2 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Entities at most, 1 to 1,000; 200 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_nodes: Option<u32>,
    /// The form.
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

/// An edge of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphEdge {
    /// One end.
    pub source: String,
    /// The other end.
    pub target: String,
    /// Its keywords.
    pub keywords: String,
    /// Its description.
    pub description: String,
    /// Its strength.
    pub weight: f64,
}

/// Reply of `knowledge.graph`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeGraphReply {
    /// The nodes; empty in another form than `json`.
    pub nodes: Vec<GraphNode>,
    /// The edges between them.
    pub edges: Vec<GraphEdge>,
    /// Whether `max_nodes` cut the graph.
    pub truncated: bool,
    /// The graph as text, in another form than `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// `knowledge.entity.create`, `.update`, `.delete`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeEntityParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Name of the entity.
    pub name: String,
    /// With `update`: its new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,
    /// Its type; needed with `create`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub entity_type: Option<String>,
    /// Its description; needed with `create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `knowledge.entity.merge`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeEntityMergeParams {
    /// The folder, absolute.
    pub workspace: String,
    /// Names of the entities that disappear.
    pub sources: Vec<String>,
    /// The entity that takes over their descriptions, chunks and relations.
    pub target: String,
    /// The same key returns the same reply.
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
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeRelationParams {
    /// The folder, absolute.
    pub workspace: String,
    /// One end.
    pub source: String,
    /// The other end.
    pub target: String,
    /// Its keywords, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keywords: Option<String>,
    /// Its description; needed with `create`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its strength, 1.0 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// The same key returns the same reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `knowledge.relation.create`, `.update` and `.delete`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeRelationReply {
    /// The relation; absent after `delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<GraphEdge>,
}
