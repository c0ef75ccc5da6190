//! What scenarios share. Each file says one kind of thing.

mod model_rules;
mod model_script;
pub mod model_server;
mod model_wire;
