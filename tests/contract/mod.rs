//! Tests that the documents and the code agree.

mod config_example;
mod docs_match;
mod examples;
mod old_database;
mod readme;
mod security;
mod wire_names;
