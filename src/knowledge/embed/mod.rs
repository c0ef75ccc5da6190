//! Vectors: embedders over HTTP or from a folder of static vectors, and a reranker.

mod http;
mod safetensors;
mod static_model;
mod word_piece;

pub use http::{HttpEmbedder, HttpReranker, HttpTarget};
pub use static_model::StaticEmbedder;
