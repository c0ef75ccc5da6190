//! Arguments of `agentctl knowledge`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use api::params::GraphFormatParam;
use types::knowledge::{ChunkPick, EntityOrder, IndexLevel, QueryMode};

/// Actions on the index of a folder.
#[derive(Debug, Subcommand)]
pub enum KnowledgeCommand {
    /// Index the folder, or update its index, and show the progress
    Index(IndexArgs),
    /// Ask a question about the index
    Query(QueryArgs),
    /// Add documents that are not files of the folder
    Insert {
        /// Files with texts; `-` for standard input
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// An id; with one document only
        #[arg(long)]
        id: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List the documents of the index, show one, or delete one
    Documents {
        /// Id or path of a document to show
        id: Option<String>,
        /// Delete it from the index; its file stays
        #[arg(long, requires = "id")]
        delete: bool,
        /// Only documents in this state: pending, processing, processed or failed
        #[arg(long, conflicts_with = "id")]
        status: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a part of the graph, write it to a file, or change it
    Graph(GraphArgs),
    /// Show state and size of the index
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget cached answers of models, or delete the whole index
    Clear {
        /// Also forget what models extracted, which costs money to get again
        #[arg(long, conflicts_with = "index")]
        all: bool,
        /// Delete the index with all inserted documents
        #[arg(long)]
        index: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop the running job; the next `index` continues it
    Cancel,
}

/// Arguments of `knowledge index`.
#[derive(Debug, Args)]
pub struct IndexArgs {
    /// Files and folders below the folder; by default all
    pub paths: Vec<String>,
    /// How much is extracted; semantic asks a model and needs a budget
    #[arg(long, value_enum)]
    pub level: Option<LevelArg>,
    /// US dollars that level semantic may spend
    #[arg(long, value_name = "USD")]
    pub budget: Option<f64>,
    /// Tokens that level semantic may use
    #[arg(long, value_name = "TOKENS")]
    pub budget_tokens: Option<u64>,
    /// Show the estimate only
    #[arg(long)]
    pub dry_run: bool,
    /// Do not wait for the end
    #[arg(long)]
    pub detach: bool,
    /// As JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `knowledge query`.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// The question
    #[arg(required = true)]
    pub query: Vec<String>,
    /// Which parts of the index are read; mix if none is given
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// A keyword for a theme; with this or --name no model is asked for keywords
    #[arg(long = "theme", value_name = "KEYWORD")]
    pub themes: Vec<String>,
    /// A keyword for a name
    #[arg(long = "name", value_name = "KEYWORD")]
    pub names: Vec<String>,
    /// Print the search results instead of an answer; no model is called for one
    #[arg(long)]
    pub context: bool,
    /// Print the prompt of the answer instead of an answer; no model is called for one
    #[arg(long, conflicts_with = "context")]
    pub prompt: bool,
    /// Print the prompt after the answer; with --json it is `context`
    #[arg(long)]
    pub include_context: bool,
    /// Limits of the search.
    #[command(flatten)]
    pub limits: QueryLimits,
    /// The form of the answer, for example "One sentence"
    #[arg(long, value_name = "FORM")]
    pub response_type: Option<String>,
    /// Further instructions for the answer
    #[arg(long, value_name = "TEXT")]
    pub user_prompt: Option<String>,
    /// The language of the answer
    #[arg(long)]
    pub language: Option<String>,
    /// A file with the conversation before, as a JSON list of {"role", "content"}; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// How results are selected.
    #[command(flatten)]
    pub selection: QuerySelection,
    /// The whole result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Limits of the search and the prompt of `knowledge query`.
#[derive(Debug, Args)]
pub struct QueryLimits {
    /// Entities, relations and chunks to find
    #[arg(long, value_name = "N")]
    pub top_k: Option<u32>,
    /// Chunks to keep; by default as many as --top-k
    #[arg(long, value_name = "N")]
    pub chunk_top_k: Option<u32>,
    /// Tokens of all entities
    #[arg(long, value_name = "TOKENS")]
    pub max_entity_tokens: Option<u32>,
    /// Tokens of all relations
    #[arg(long, value_name = "TOKENS")]
    pub max_relation_tokens: Option<u32>,
    /// Tokens of the whole prompt
    #[arg(long, value_name = "TOKENS")]
    pub max_total_tokens: Option<u32>,
}

/// How `knowledge query` selects results.
#[derive(Debug, Args)]
pub struct QuerySelection {
    /// Do not use the reranker
    #[arg(long)]
    pub no_rerank: bool,
    /// Leave out chunks that the reranker scores lower
    #[arg(long, value_name = "SCORE")]
    pub min_rerank_score: Option<f64>,
    /// With mode local: relations too
    #[arg(long)]
    pub local_relations: bool,
    /// With modes global and hybrid: the chunks of relations too
    #[arg(long)]
    pub relation_chunks: bool,
    /// The order of entities
    #[arg(long, value_enum, value_name = "ORDER")]
    pub entity_order: Option<EntityOrderArg>,
    /// How chunks of entities are chosen
    #[arg(long, value_enum, value_name = "HOW")]
    pub chunk_pick: Option<ChunkPickArg>,
}

/// Arguments of `knowledge graph`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct GraphArgs {
    /// A change of the graph
    #[command(subcommand)]
    pub edit: Option<GraphEdit>,
    /// The entity in the middle; by default those with the most relations
    pub name: Option<String>,
    /// Steps from it
    #[arg(long)]
    pub depth: Option<u32>,
    /// Entities at most
    #[arg(long)]
    pub max_nodes: Option<u32>,
    /// The form
    #[arg(long, value_enum, default_value = "mermaid")]
    pub format: GraphFormatArg,
    /// The file to write; by default standard output
    #[arg(short, long)]
    pub output: Option<PathBuf>,
}

/// A change of the graph. It stays when files are indexed again.
#[derive(Debug, Subcommand)]
pub enum GraphEdit {
    /// Add an entity (one name) or a relation (two names)
    Add(GraphChange),
    /// Change an entity (one name) or a relation (two names)
    Edit {
        /// The change
        #[command(flatten)]
        change: GraphChange,
        /// The new name of the entity
        #[arg(long, value_name = "NAME")]
        rename: Option<String>,
    },
    /// Merge entities into another one
    Merge {
        /// The entities that are removed
        #[arg(required = true)]
        sources: Vec<String>,
        /// The entity that receives their descriptions and relations
        #[arg(long, value_name = "NAME")]
        into: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove an entity (one name) or a relation (two names)
    Rm {
        /// What to remove
        #[command(flatten)]
        names: GraphNames,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// The name of an entity, or the names of both ends of a relation.
#[derive(Debug, Args)]
pub struct GraphNames {
    /// The entity, or one end of the relation
    pub name: String,
    /// The other end of the relation
    pub other: Option<String>,
}

/// The values of an entity or of a relation.
#[derive(Debug, Args)]
pub struct GraphChange {
    /// What to change
    #[command(flatten)]
    pub names: GraphNames,
    /// The type of an entity; needed to add one
    #[arg(long = "type", value_name = "TYPE")]
    pub entity_type: Option<String>,
    /// The description; needed to add something
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Keywords of a relation, separated by commas
    #[arg(long)]
    pub keywords: Option<String>,
    /// The strength of a relation; 1 by default
    #[arg(long)]
    pub weight: Option<f64>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

impl GraphChange {
    /// Only the names, without values.
    pub(crate) fn of_names(names: GraphNames) -> Self {
        Self { names, entity_type: None, description: None, keywords: None, weight: None, json: false }
    }
}

/// An order of entities.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EntityOrderArg {
    /// The one with the most relations first
    Degree,
    /// As the search found them
    Similarity,
}

impl From<EntityOrderArg> for EntityOrder {
    fn from(order: EntityOrderArg) -> Self {
        match order {
            EntityOrderArg::Degree => Self::Degree,
            EntityOrderArg::Similarity => Self::Similarity,
        }
    }
}

/// How chunks of entities are chosen.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ChunkPickArg {
    /// The most similar to the question
    Vector,
    /// More chunks for the first entities
    Weight,
}

impl From<ChunkPickArg> for ChunkPick {
    fn from(pick: ChunkPickArg) -> Self {
        match pick {
            ChunkPickArg::Vector => Self::Vector,
            ChunkPickArg::Weight => Self::Weight,
        }
    }
}

/// A level of an index.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LevelArg {
    /// Full-text search
    Lexical,
    /// Also a graph from the structure of files
    Structure,
    /// Also what a model extracts
    Semantic,
}

impl From<LevelArg> for IndexLevel {
    fn from(level: LevelArg) -> Self {
        match level {
            LevelArg::Lexical => Self::Lexical,
            LevelArg::Structure => Self::Structure,
            LevelArg::Semantic => Self::Semantic,
        }
    }
}

/// A mode of a query.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ModeArg {
    /// Entities and their chunks
    Local,
    /// Entities and relations
    Global,
    /// Entities, relations and their chunks
    Hybrid,
    /// Chunks by their text
    Naive,
    /// Everything
    Mix,
    /// Nothing
    Bypass,
}

impl From<ModeArg> for QueryMode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Local => Self::Local,
            ModeArg::Global => Self::Global,
            ModeArg::Hybrid => Self::Hybrid,
            ModeArg::Naive => Self::Naive,
            ModeArg::Mix => Self::Mix,
            ModeArg::Bypass => Self::Bypass,
        }
    }
}

/// A form of a graph.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum GraphFormatArg {
    /// Nodes and edges as JSON
    Json,
    /// A Mermaid diagram
    Mermaid,
    /// Graphviz
    Dot,
    /// GraphML
    Graphml,
    /// One HTML page with a searchable drawing
    Html,
}

impl From<GraphFormatArg> for GraphFormatParam {
    fn from(format: GraphFormatArg) -> Self {
        match format {
            GraphFormatArg::Json => Self::Json,
            GraphFormatArg::Mermaid => Self::Mermaid,
            GraphFormatArg::Dot => Self::Dot,
            GraphFormatArg::Graphml => Self::Graphml,
            GraphFormatArg::Html => Self::Html,
        }
    }
}
