//! Code that the scenarios share, one subject per file.

pub mod client;
pub mod daemon;
pub mod http_server;
pub mod inbox;
pub mod log;
pub mod mcp_server;
mod model_media;
mod model_responses;
mod model_rules;
mod model_script;
pub mod model_server;
mod model_wire;
pub mod pages;
pub mod pictures;
pub mod printed;
mod properties;
pub mod raw;
pub mod wait;
