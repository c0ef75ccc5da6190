//! What is promised in writing, and that code and paper say the same.

mod config_example;
mod docs_match;
mod readme;
mod security;
mod wire_names;
