//! Every wire name of the tables is served, documented and spelled the same everywhere.

use std::collections::BTreeSet;

use agentd::api::fault::Code;
use agentd::api::methods::METHODS;
use agentd::api::{methods, openrpc};
use serde_json::{Value, json};

use crate::support::daemon::TestDaemon;

#[tokio::test]
async fn every_method_in_table_is_served_and_described() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    for method in METHODS.iter().filter(|method| method.name != "daemon.shutdown") {
        if let Err(refusal) = alice.try_call(method.name, json!({})).await {
            assert_eq!((method.name, refusal.kind.as_str()), (method.name, "invalid_params"), "{refusal:?}");
        }
    }
    assert_eq!(alice.call("rpc.discover", json!({})).await, openrpc::openrpc());
    alice.call("daemon.shutdown", json!({})).await;
}

#[tokio::test]
async fn listed_unbuilt_parameters_are_refused_as_unsupported() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    for (method, parameter) in
        METHODS.iter().flat_map(|m| m.traits.unsupported_params.iter().map(move |name| (m.name, *name)))
    {
        let mut params = json!({"session_id": session.id, "cwd": daemon.workspace(), "input": "x"});
        params[parameter] = json!("anything");
        let refusal = session.client.refused(method, params).await;
        assert_eq!(
            (refusal.kind.as_str(), &refusal.data["path"]),
            ("unsupported", &json!(parameter)),
            "{method}"
        );
    }
}

#[test]
fn method_names_have_unique_noun_verb_form() {
    let names: BTreeSet<&str> = METHODS.iter().map(|method| method.name).collect();
    assert_eq!(names.len(), METHODS.len());
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    for name in names {
        // A noun may belong to another one, as in `session.queue.list`.
        let words: Vec<&str> = name.split('.').collect();
        assert!((2..=3).contains(&words.len()) && words.iter().all(|word| is_word(word)), "{name}");
        assert!(methods::find(name).is_some());
    }
}

#[test]
fn error_kinds_match_specified_error_codes() {
    let expected = [
        (-32700, "parse_error"),
        (-32600, "invalid_request"),
        (-32601, "method_not_found"),
        (-32602, "invalid_params"),
        (-32602, "unsupported"),
        (-32603, "internal"),
        (-32000, "not_authorised"),
        (-32001, "overloaded"),
        (-32002, "not_found"),
        (-32800, "cancelled"),
        (-32010, "conflict"),
        (-32011, "stale_precondition"),
        (-32012, "busy"),
        (-32013, "budget"),
        (-32014, "not_pending"),
        (-32015, "cursor_ahead"),
        (-32016, "unsupported_version"),
        (-32017, "shutting_down"),
        (-32018, "storage_read_only"),
    ];
    let got: Vec<(i32, &str)> = Code::ALL.iter().map(|code| (code.number(), code.kind())).collect();
    assert_eq!(got, expected);
}

/// Every field of the document's schemas, with its path.
fn fields<'a>(value: &'a Value, path: &str, found: &mut Vec<(String, &'a Value)>) {
    match value {
        Value::Object(members) => {
            // Examples hold values, and schemas of tools among them.
            for (name, inner) in members.iter().filter(|(name, _)| *name != "examples") {
                let is_field = path.ends_with("/properties");
                let path = format!("{path}/{name}");
                fields(inner, &path, found);
                if is_field {
                    found.push((path, inner));
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| fields(inner, path, found)),
        _ => {}
    }
}

#[test]
fn wire_fields_are_snake_case_and_documented() {
    let document = openrpc::openrpc();
    let mut found = Vec::new();
    fields(&document, "", &mut found);
    assert!(found.len() > 200, "the document is not empty: {}", found.len());
    for (path, schema) in found {
        let name = path.rsplit('/').next().expect("a name");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{path}");
        let says = schema.get("description").is_some() || schema.get("const").is_some();
        assert!(says || schema.get("$ref").is_some(), "{path} has no description");
    }
}
