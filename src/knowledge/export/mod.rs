//! A part of the graph, and its forms: Mermaid, DOT, GraphML, and one HTML page that needs nothing else.

mod formats;
mod html;
mod subgraph;

pub use formats::{dot, graphml, mermaid};
pub use html::html_page;
pub use subgraph::{SubGraph, around, between};
