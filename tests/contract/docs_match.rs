//! The reference in `proto-docs/` equals the text that the code prints. `AGENTD_BLESS=1` rewrites it.

use std::path::Path;

use agentd::api::{clients, docs, openrpc};

/// Asserts that the file has exactly this content.
fn check(name: &str, printed: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto-docs").join(name);
    if std::env::var_os("AGENTD_BLESS").is_some() {
        std::fs::write(&file, printed).expect("written");
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let first = written.lines().zip(printed.lines()).position(|(written, printed)| written != printed);
    let line = first.unwrap_or_else(|| written.lines().count().min(printed.lines().count()));
    assert!(
        written == printed,
        "proto-docs/{name} differs from the code at line {}:\n  written: {:?}\n  printed: {:?}\n\
         run the tests with AGENTD_BLESS=1 and commit the file",
        line + 1,
        written.lines().nth(line),
        printed.lines().nth(line),
    );
}

#[test]
fn methods_document_matches_generated_page() {
    check("methods.md", &docs::methods_page());
}

#[test]
fn events_document_matches_generated_page() {
    check("events.md", &docs::events_page());
}

#[test]
fn types_document_matches_generated_page() {
    check("types.md", &docs::types_page());
}

#[test]
fn errors_document_matches_generated_page() {
    check("errors.md", &docs::errors_page());
}

#[test]
fn openrpc_document_matches_generated_file() {
    let document = serde_json::to_string_pretty(&openrpc::openrpc()).expect("JSON");
    check("openrpc.json", &format!("{document}\n"));
}

#[test]
fn types_of_typed_clients_match_generated_files() {
    check("clients/typescript/src/types.ts", &clients::typescript_types());
    check("clients/python/agentd_client/types.py", &clients::python_types());
}
