//! Vectors: embedders that speak HTTP or read a folder of static vectors, a reranker, and a scan over vectors in memory.

mod http;
mod safetensors;
mod static_model;
mod vector_scan;
mod word_piece;

pub use http::{HttpEmbedder, HttpReranker, HttpTarget};
pub use static_model::StaticEmbedder;
pub use vector_scan::{VectorIndex, VectorScan};
